// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What ADR 0078 says of the client is so. A later client may differ; then
// longshore's tests with it, and that page, are looked at again.

// names shows records as key, sequence and length.
func names(records []Record) string {
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprintf("%s-%d(%d)", r.Key, r.Sequence, len(r.Payload)))
	}
	return strings.Join(out, " ")
}

// fails runs the client's writer, which must fail.
func fails(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command(Program(t), "write", path)
	cmd.Stdin = strings.NewReader("k 00\n")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("the client writes %s: %s", path, out)
	}
}

func of(key string, n int) Record { return Record{Key: key, Payload: make(Bytes, n)} }

func TestClientForgetsKeysInBeacons(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.ss")
	Write(t, path, WriteOptions{Interval: 4096}, of("a", 100), of("b", 100))
	Write(t, path, WriteOptions{}, of("b", 5000))
	b := Dump(t, path).Beacons
	if len(b) != 1 || len(b[0].Markers) != 1 || b[0].Markers[0].Key != "b" {
		t.Errorf("beacons %+v, want b alone", b)
	}
}

func TestClientBehindItsEndMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mark.ss")
	Write(t, path, WriteOptions{Interval: 1024, EndMark: true}, of("k", 50))
	Write(t, path, WriteOptions{}, of("k", 600), of("k", 400))
	if got, end := Replay(t, path); names(got) != "k-1(50)" || end.Why != "eos" {
		t.Errorf("it replays %s and ends by %+v", names(got), end)
	}
	if got := names(Dump(t, path).Records); got != "k-1(50) SEA_STREAMER_INTERNAL-0(3) k-2(600) k-3(400)" {
		t.Errorf("the file holds %s", got)
	}
	// The file has a beacon now: what is behind the mark is written over.
	Write(t, path, WriteOptions{}, of("k", 10))
	if got := names(Dump(t, path).Records); got != "k-1(50) k-2(10)" {
		t.Errorf("after a restart the file holds %s", got)
	}
}

func TestClientLeavesTheRestOfItsEndMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rest.ss")
	Write(t, path, WriteOptions{Interval: 1024, EndMark: true}, of("k", 1200))
	Write(t, path, WriteOptions{}, of("k", 0))
	b, err := os.ReadFile(path)
	if whole := Whole(b); err != nil || len(whole) != 3 || !bytes.HasSuffix(b[whole[2]:], []byte("EOS\xed\x7c\x0d")) {
		t.Errorf("the file ends with %x behind offsets %v (%v)", b[len(b)-20:], whole, err)
	}
}

func TestClientAtAnEndItCannotOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "beacon.ss")
	Write(t, path, WriteOptions{Interval: 1024}, of("k", 1024-headerLen-headLen-1-bodyLen))
	fails(t, path) // it ends with a beacon

	torn := filepath.Join(t.TempDir(), "torn.ss")
	Write(t, torn, WriteOptions{Interval: 1024}, of("k", 1200))
	if err := os.Truncate(torn, 1100); err != nil {
		t.Fatal(err)
	}
	fails(t, torn) // the record cut by its last beacon is not whole
	Write(t, torn, WriteOptions{EndMark: true})
	if b, err := os.ReadFile(torn); err != nil || bytes.HasPrefix(b, []byte("Ss")) {
		t.Errorf("the file begins with %q (%v), want the end mark", b[:min(30, len(b))], err)
	}
}

func TestClientSeeksByAnyKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seek.ss")
	Write(t, path, WriteOptions{}, slices.Concat(slices.Repeat([]Record{of("a", 1)}, 5), slices.Repeat([]Record{of("b", 1)}, 3))...)
	if got, _ := Replay(t, path, "--key", "b", "--sequence", "3"); names(got) != "b-1(1) b-2(1) b-3(1)" {
		t.Errorf("from sequence 3 of b it reads %s", names(got))
	}
}
