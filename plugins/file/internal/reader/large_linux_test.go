// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

// TestStartsInSixteenGiB starts in a file of 16 GiB and reads little more of it
// than the record that it delivers.
func TestStartsInSixteenGiB(t *testing.T) {
	const payload, most = 64 << 20, 16 << 20
	large, _, at := formattest.Large(256)
	path := pathOf(t)
	if err := large.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, Options{})
	for _, c := range []struct {
		name  string
		key   string
		start Start
		want  uint64
		at    int64
	}{
		{"a sequence", "other", Start{Kind: Sequence, Sequence: 50}, 50, at[99]},
		{"a time", "orders", Start{Kind: Time, Time: formattest.Born + 199}, 101, at[200]},
		{"the last one", "other", Start{Kind: Sequence, Sequence: 128}, 128, at[255]},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := bytesRead(t)
			cursor, err := r.Cursor(Pattern(c.key), c.start, false)
			if err != nil {
				t.Fatal(err)
			}
			defer cursor.Close()
			if n := bytesRead(t) - before; n > most {
				t.Errorf("the start read %d bytes, want at most %d", n, most)
			}
			b, err := cursor.Next(t.Context(), 1, 1)
			if err != nil || len(b.Records) != 1 || len(b.Problems) > 0 {
				t.Fatalf("got %+v and error %v, want one record", b, err)
			}
			got := b.Records[0]
			if got.Sequence != c.want || got.At.Offset != c.at || len(got.Payload) != payload {
				t.Errorf("got sequence %d at %v with %d bytes, want %d at %d with %d", got.Sequence, got.At, len(got.Payload), c.want, c.at, payload)
			}
			if n := bytesRead(t) - before; n > 2*payload+most {
				t.Errorf("start and record read %d bytes, want at most %d", n, 2*payload+most)
			}
		})
	}
}

// bytesRead is how much this process has read, from files too.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("rchar: "))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
