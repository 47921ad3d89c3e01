// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop"
)

// F-01: kill -9 of the writer at a random moment, again and again. A live reader in a
// process of its own and a replay after each kill get every whole record once and
// nothing of half a one; the next writer goes on behind what is whole.
func TestF01TornTail(t *testing.T) {
	t.Parallel()
	const (
		rounds = 10
		size   = 64 << 10
		first  = 5 // records of a writer that began again, before it may be killed
		most   = 24
	)
	path := filepath.Join(t.TempDir(), "orders.ss")
	endpoint := childEndpoint{Name: "file", Plugin: "file", Path: filePlugin(t), Settings: map[string]any{"path": path}}
	live := startChild(t, childConfig{
		Endpoints:     []childEndpoint{endpoint},
		Subscriptions: []childSubscription{{From: "file", Name: "orders", Bodies: true}},
	}, nil)
	live.next("ready")
	var want []string // in the file
	torn := 0
	for round := range rounds {
		writer := startChild(t, childConfig{
			Endpoints: []childEndpoint{endpoint},
			Publish:   &childPublish{To: "file", Name: "orders", Prefix: fmt.Sprint("round-", round), Count: 100 * most, Size: size},
		}, nil)
		var stored []string
		for range first + rand.IntN(most) {
			e := writer.next("stored")
			if e.Error != "" {
				t.Fatalf("round %d: %s is not stored: %s", round, e.Payload, e.Error)
			}
			stored = append(stored, e.Payload)
		}
		// Stopped, the host cannot start another plugin before it is killed too.
		pid := writer.plugins()["file"]
		writer.signal(syscall.SIGSTOP)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writer.kill()
		if tear(t, path, round%2 == 0) {
			torn++
		}
		got, s := replays(t, path, "orders")
		var names []string
		for i, d := range got.all() {
			names = append(names, nameOf([]byte(d.payload)))
			if d.sequence != uint64(i+1) {
				t.Fatalf("round %d: record %d has the sequence %d", round, i+1, d.sequence)
			}
		}
		if n := len(want); len(names) < n+len(stored) || !slices.Equal(names[:n], want) || !slices.Equal(names[n:n+len(stored)], stored) {
			t.Fatalf("round %d: a replay has %d records, before %d, and %d were stored: %q", round, len(names), n, len(stored), names[min(n, len(names)):])
		}
		if n := len(s.reports()); n > 1 {
			t.Errorf("round %d: half a record is reported %d times", round, n)
		}
		want = names
	}
	last := startChild(t, childConfig{
		Endpoints: []childEndpoint{endpoint},
		Publish:   &childPublish{To: "file", Name: "orders", Prefix: "last", Count: first, Size: size},
	}, nil)
	for i := range first {
		last.next("stored")
		want = append(want, fmt.Sprint("last-", i))
	}
	var got []string
	for range want {
		got = append(got, live.next("run").Payload)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the live reader (-want +got):\n%s", diff)
	}
	if reports := live.log.of("L-STREAM", ""); len(reports) > 0 {
		t.Errorf("the live reader reports %v", reports)
	}
	records, end := interop.Replay(t, path, "--key", "orders")
	var others []string
	for _, r := range records {
		others = append(others, nameOf(r.Payload))
	}
	if diff := cmp.Diff(want, others); diff != "" || end.Why != "eof" {
		t.Errorf("the SeaStreamer client ends by %+v (-want +got):\n%s", end, diff)
	}
	t.Logf("%d of %d writers left half a record", torn, rounds)
	for _, p := range []*process{last, live} {
		p.signal(syscall.SIGTERM)
		if status := p.status(); status != 0 {
			t.Errorf("status %d", status)
		}
	}
}

// tear reports whether a file ends with half a record. Where it does not and
// must, a part of its last record is appended, as a writer killed in mid-record
// leaves it.
func tear(t *testing.T, path string, must bool) bool {
	t.Helper()
	text := content(t, path)
	at := interop.Whole(text)
	end := at[len(at)-1]
	if int64(len(text)) > end {
		return true
	}
	const interval = 1 << 20 // of a new file
	begin := at[len(at)-2]
	room := min(end-begin, interval-begin%interval, interval-end%interval) // up to a beacon's place
	if !must || room < 2 {
		return false
	}
	half := text[begin : begin+1+rand.Int64N(room-1)]
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(half); err != nil {
		t.Fatal(err)
	}
	return true
}
