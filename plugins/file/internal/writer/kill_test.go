// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// childTask is set for processes that write until they are killed.
const childTask = "WRITER_TEST_TASK"

// task is what such a process does.
type task struct {
	Path        string
	Interval    uint32
	Sync        Sync
	SyncEvery   time.Duration
	RotateBytes int64
}

func (j task) options() Options {
	return Options{Interval: j.Interval, Sync: j.Sync, SyncEvery: j.SyncEvery, RotateBytes: j.RotateBytes}
}

// body is the payload of a record: nobody else's, and so long that kills hit it.
func body(key string, sequence uint64) []byte {
	r := rand.New(rand.NewPCG(sequence, uint64(key[0])))
	n := r.IntN(3000)
	if r.IntN(20) == 0 {
		n = 64 << 10
	}
	text := fmt.Sprintf("%s %d ", key, sequence)
	return []byte(strings.Repeat(text, n/len(text)+1))
}

// writeUntilKilled prints a line for each record that is confirmed.
func writeUntilKilled(text string) {
	var job task
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		panic(err)
	}
	w, err := Open(context.Background(), job.Path, job.options())
	if err != nil {
		panic(err)
	}
	keys := []string{"a", "b", "c"}
	sequences := map[string]uint64{}
	for _, k := range keys {
		if known := w.table.keys[k]; known != nil {
			sequences[k] = known.sequence
		}
	}
	for range 1_000_000 {
		batch := make([]Entry, 1+rand.IntN(rand.IntN(400)+1))
		for i := range batch {
			k := keys[rand.IntN(len(keys))]
			sequences[k]++
			batch[i] = Entry{Key: k, Payload: body(k, sequences[k])}
		}
		w.Append(batch, func(i int, sequence uint64, err error) {
			if err != nil {
				panic(err)
			}
			_, _ = fmt.Fprintf(os.Stdout, "%s %d\n", batch[i].Key, sequence) // unbuffered
		})
	}
}

// killed runs a child until a moment after its first confirmations, and says
// what was confirmed.
func killed(t *testing.T, job task) map[string]uint64 {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childTask+"="+string(text))
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	confirmed := map[string]uint64{}
	var timer *time.Timer
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if timer == nil {
			timer = time.AfterFunc(rand.N(15*time.Millisecond), func() { _ = child.Process.Kill() })
			defer timer.Stop()
		}
		var key string
		var sequence uint64
		if _, err := fmt.Sscanf(line, "%s %d", &key, &sequence); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		confirmed[key] = max(confirmed[key], sequence)
	}
	if err := child.Wait(); err == nil || timer == nil {
		t.Fatalf("the child ended by itself: %v\n%s", err, complaints.String())
	}
	return confirmed
}

// A writer is killed at any moment, again and again. What it confirmed is there;
// what it did not is there whole or not at all, and the sequences go on.
func TestKilledWritersLoseNothingTheyConfirmed(t *testing.T) {
	const rounds = 20
	for name, job := range map[string]task{
		"none": {}, "interval": {Sync: SyncInterval, SyncEvery: 5 * time.Millisecond}, "each": {Sync: SyncEach},
		"rotating": {RotateBytes: 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			job.Path, job.Interval = path, 16<<10
			torn, records := 0, 0
			for round := range rounds {
				confirmed := killed(t, job)
				left, _ := os.Stat(path) // nil between the renamings of a rotation
				w := open(t, path, job.options())
				if left == nil || w.size != left.Size() {
					torn++
				}
				for key, sequence := range confirmed {
					if got := w.table.keys[key]; got == nil || got.sequence < sequence {
						t.Fatalf("round %d: %s: %d was confirmed, the file has %+v", round, key, sequence, got)
					}
				}
				for _, key := range []string{"a", "b", "c"} {
					next := uint64(1)
					if known := w.table.keys[key]; known != nil {
						next = known.sequence + 1
					}
					if got := put(t, w, Entry{Key: key, Payload: body(key, next)}); got[0] != next {
						t.Fatalf("round %d: %s: got %d, want %d", round, key, got[0], next)
					}
				}
				closed(t, w)
				if round%5 != 4 {
					continue
				}
				last := map[string]uint64{}
				list := messages(all(t, path))
				for _, r := range list {
					if last[r.Key]++; r.Sequence != last[r.Key] || r.Payload != string(body(r.Key, r.Sequence)) {
						t.Fatalf("round %d: %s %d follows %d, %d bytes", round, r.Key, r.Sequence, last[r.Key]-1, len(r.Payload))
					}
				}
				records = len(list)
			}
			files, _ := segment.List(path)
			t.Logf("%d rounds, %d with a torn end, %d records in %d files", rounds, torn, records, len(files))
		})
	}
}
