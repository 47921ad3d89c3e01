// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/reader"
)

// follow reads a path live from its beginning and passes on every record.
func follow(t *testing.T, path string) <-chan parsed {
	t.Helper()
	r, err := reader.New(path, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Cursor(reader.Pattern("*"), reader.Start{}, false)
	if err != nil {
		t.Fatal(err)
	}
	records := make(chan parsed, 1024)
	go func() {
		defer close(records)
		for {
			b, err := c.Next(context.Background(), 100, 0)
			if err != nil {
				if !errors.Is(err, reader.ErrClosed) {
					t.Error(err)
				}
				return
			}
			for _, p := range b.Problems {
				if p.Kind != reader.TornTail {
					t.Errorf("the reader met: %v", p)
				}
			}
			for _, r := range b.Records {
				records <- parsed{r.Key, r.Sequence, string(r.Payload)}
			}
		}
	}()
	t.Cleanup(func() {
		c.Close()
		for range records {
			// What is left is of no interest.
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return records
}

// A live reader goes on over writers that are killed, cut off what is torn,
// rotate and set end marks: it gets every record once, and nothing else.
func TestALiveReaderFollowsWhateverWritersDo(t *testing.T) {
	const rounds = 10
	for name, job := range map[string]task{"one file": {}, "rotating": {RotateBytes: 300 << 10}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			closed(t, open(t, path, Options{Interval: 16 << 10}))
			records := follow(t, path)
			job.Path, job.Interval = path, 16<<10
			last := map[string]uint64{}
			patience := time.NewTimer(2 * time.Minute)
			defer patience.Stop()
			for round := range rounds {
				killed(t, job)
				o := job.options()
				o.EndMark = round%2 == 0
				w := open(t, path, o)
				put(t, w, plain("d", fmt.Sprint("round ", round))...)
				closed(t, w)
				for last["d"] <= uint64(round) {
					select {
					case r := <-records:
						if last[r.Key]++; r.Sequence != last[r.Key] || r.Key != "d" && r.Payload != string(body(r.Key, r.Sequence)) {
							t.Fatalf("round %d: %s %d follows %d, %d bytes", round, r.Key, r.Sequence, last[r.Key]-1, len(r.Payload))
						}
					case <-patience.C:
						t.Fatalf("round %d: the reader has come to %v", round, last)
					}
				}
			}
			want := map[string]uint64{}
			for _, r := range messages(all(t, path)) {
				want[r.Key]++
			}
			if fmt.Sprint(last) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", last, want)
			}
		})
	}
}
