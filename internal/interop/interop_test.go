// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The client reads what it writes, in each of the ways that tests use.
func TestClientReadsItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.ss")
	long := bytes.Repeat([]byte{0xff, 0}, 2000)
	wrote := Write(t, path, WriteOptions{Interval: 1024},
		Record{Key: "orders", Payload: Bytes("one")}, Record{Key: "empty"}, Record{Key: "orders", Payload: long})
	got, end := Replay(t, path)
	if diff := cmp.Diff(wrote, got); diff != "" || end.Why != "eof" {
		t.Errorf("it ended by %+v, records (-wrote +read):\n%s", end, diff)
	}
	follow := Follow(t, path)
	wrote = append(wrote, Write(t, path, WriteOptions{EndMark: true}, Record{Key: "orders", Payload: Bytes("behind")})...)
	if r, end := follow.Next(); end != nil || !cmp.Equal(r, wrote[3]) {
		t.Errorf("followed: %+v, %+v, want %+v", r, end, wrote[3])
	}
	if r, end := follow.Next(); end == nil || end.Why != "eos" {
		t.Errorf("followed: %+v, %+v, want the end", r, end)
	}
	got, end = Replay(t, path, "--key", "orders", "--sequence", "2")
	if diff := cmp.Diff(wrote[2:], got); diff != "" || end.Why != "eos" {
		t.Errorf("from sequence 2 it ended by %+v, records (-wrote +read):\n%s", end, diff)
	}
	c := Dump(t, path)
	if c.Header.Name != "orders.ss" || c.Header.Interval != 1024 || len(c.Records) != 5 || len(c.Beacons) != 4 || c.End.Why != "eof" {
		t.Errorf("the client's parser sees %+v", c)
	}
	if _, end := Replay(t, path, "--key", "orders", "--sequence", "99"); end.Why != "seek" {
		t.Errorf("seeking beyond the end: %+v", end)
	}
}
