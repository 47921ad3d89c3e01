// SPDX-License-Identifier: Apache-2.0

package position

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func opened(t *testing.T, folder, group, name string) *Tracker {
	t.Helper()
	tr, err := Open(folder, group, name, "archive")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func closed(t *testing.T, tr *Tracker) {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func takeBack(t *testing.T, tr *Tracker, but ...*Entry) {
	t.Helper()
	if err := tr.TakeBack(but...); err != nil {
		t.Error(err)
	}
}

func attempts(tr *Tracker) []uint32 {
	var ns []uint32
	for tr.Waiting() != nil {
		ns = append(ns, tr.Again().Attempt)
	}
	return ns
}

func TestAttempts(t *testing.T) {
	folder, s := t.TempDir(), stream(10)
	tr := opened(t, folder, "billing", "orders")
	if !tr.Fresh() {
		t.Error("a new group is not fresh")
	}
	if err := tr.Begin(s[0].Place); err != nil || tr.Fresh() {
		t.Fatalf("begin: %v, fresh %v", err, tr.Fresh())
	}
	es := tr.Deliver(nil, s[:4], s[4].Place)
	if err := tr.Settle([]Verdict{{Entry: es[1]}, {Entry: es[2], Requeue: true}}); err != nil {
		t.Fatal(err)
	}
	tr.Release(es[3])
	closed(t, tr)

	tr = opened(t, folder, "billing", "orders")
	if tr.Fresh() || tr.Next() != s[4].Place || tr.Unsettled() != 3 {
		t.Errorf("fresh %v, next %v, %d unsettled", tr.Fresh(), tr.Next(), tr.Unsettled())
	}
	if last, ok := tr.Last(); !ok || last != s[3] {
		t.Errorf("last %v, %v, want %v", last, ok, s[3])
	}
	if d := cmp.Diff([]uint32{2, 2, 2}, attempts(tr)); d != "" {
		t.Errorf("attempts in the second life (-want +got):\n%s", d)
	}
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	closed(t, tr)

	tr = opened(t, folder, "billing", "orders")
	if d := cmp.Diff([]uint32{3, 3, 3}, attempts(tr)); d != "" {
		t.Errorf("attempts in the third life (-want +got):\n%s", d)
	}
	closed(t, tr)
}

// What is out at an end in order is not counted, unless it was released, is to
// be handed out again, or is said to have been begun.
func TestTakeBack(t *testing.T) {
	folder, s := t.TempDir(), stream(20)
	tr := opened(t, folder, "billing", "orders")
	if err := tr.Begin(s[0].Place); err != nil {
		t.Fatal(err)
	}
	es := tr.Deliver(nil, s[:6], s[6].Place)
	if err := tr.Settle([]Verdict{{Entry: es[0]}, {Entry: es[1], Requeue: true}, {Entry: es[2], Requeue: true}}); err != nil {
		t.Fatal(err)
	}
	again := tr.Again()
	tr.Release(es[3])
	takeBack(t, tr, es[4], es[2], es[0])
	if again.Attempt != 1 || es[5].Attempt != 0 {
		t.Errorf("attempts %d and %d are left", again.Attempt, es[5].Attempt)
	}
	closed(t, tr)
	for range 3 {
		tr = opened(t, folder, "billing", "orders")
		if tr.Next() != s[6].Place || tr.Unsettled() != 5 {
			t.Errorf("next %v, %d unsettled", tr.Next(), tr.Unsettled())
		}
		if d := cmp.Diff([]uint32{2, 2, 2, 2, 1}, attempts(tr)); d != "" {
			t.Errorf("attempts (-want +got):\n%s", d)
		}
		takeBack(t, tr)
		closed(t, tr)
	}
	// What is only taken back does not go on being so.
	tr = opened(t, folder, "billing", "orders")
	attempts(tr)
	closed(t, tr)
	tr = opened(t, folder, "billing", "orders")
	if d := cmp.Diff([]uint32{3, 3, 3, 3, 2}, attempts(tr)); d != "" {
		t.Errorf("attempts behind a crash (-want +got):\n%s", d)
	}
	closed(t, tr)
}

// Where taking back cannot be written, all count, and what can be written is.
func TestTakeBackOnAFullDisk(t *testing.T) {
	s, d := stream(10), &memory{}
	tr := mustOpen(t, d)
	if err := tr.Begin(s[0].Place); err != nil {
		t.Fatal(err)
	}
	tr.Deliver(nil, s[:3], s[3].Place)
	takeBack(t, tr)
	d.fail, d.short = 1, 50
	if err := tr.Close(); !errors.Is(err, errFull) || !d.closed {
		t.Errorf("close: %v, closed %v", err, d.closed)
	}
	tr = mustOpen(t, d.again())
	if d := cmp.Diff([]uint32{2, 2, 2}, attempts(tr)); d != "" || tr.Next() != s[3].Place {
		t.Errorf("next %v, attempts (-want +got):\n%s", tr.Next(), d)
	}
}

func TestOneReaderForEachName(t *testing.T) {
	folder := t.TempDir()
	tr := opened(t, folder, "billing", "orders.*")
	_, err := Open(folder, "billing", "orders.*", "second")
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Group != "billing" || locked.Name != "orders.*" || locked.Path != tr.Path() {
		t.Fatalf("opened twice: %v", err)
	}
	if want := pid() + " archive"; locked.Holder != want {
		t.Errorf("holder %q, want %q", locked.Holder, want)
	}
	others := []*Tracker{opened(t, folder, "billing", "orders.a"), opened(t, folder, "audit", "orders.*"), opened(t, folder, "billing", "*")}
	closed(t, tr)
	closed(t, opened(t, folder, "billing", "orders.*"))
	for _, o := range others {
		closed(t, o)
	}
}

func TestNames(t *testing.T) {
	long := string(make([]byte, maxName+1))
	for _, tt := range []struct{ group, name, field string }{
		{"", "orders", "group"},
		{"..", "orders", "group"},
		{"a/b", "orders", "group"},
		{long, "orders", "group"},
		{"g", "", "name"},
		{"g", "a/b", "name"},
		{"g", "a*b", "name"},
		{"g", "a**", "name"},
	} {
		var bad *NameError
		if _, err := Open(t.TempDir(), tt.group, tt.name, ""); !errors.As(err, &bad) || bad.Field != tt.field {
			t.Errorf("group %q, name %q: %v", tt.group, tt.name, err)
		}
	}
	folder := t.TempDir()
	for _, name := range []string{"..", ".", "*", "-", "a*"} {
		closed(t, opened(t, folder, "g", name))
	}
	if found, err := filepath.Glob(filepath.Join(folder, "g", "*.pos")); err != nil || len(found) != 5 {
		t.Errorf("files %q, %v", found, err)
	}
}

func TestFilesThatAreNoPositions(t *testing.T) {
	folder := t.TempDir()
	tr := opened(t, folder, "g", "orders")
	if err := tr.Begin(Place{Created: 1, Offset: 128}); err != nil {
		t.Fatal(err)
	}
	closed(t, tr)
	good, err := os.ReadFile(tr.Path())
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b []byte) []byte{
		"text":           func([]byte) []byte { return []byte("orders at 128") },
		"version":        func(b []byte) []byte { b[7]++; return b },
		"head":           func(b []byte) []byte { b[11] ^= 1; return b },
		"state":          func(b []byte) []byte { b[slotsAt+slotHead] ^= 1; return b },
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"another name":   func(b []byte) []byte { copy(b, appendHead(nil, "g", "Orders")); return b },
		"too much":       func(b []byte) []byte { b = append(b, 7); sealSlot(b[slotsAt:], 9); return b },
		"unknown change": func(b []byte) []byte { return withChange(b, 99, 1) },
		"no such record": func(b []byte) []byte { return withChange(b, changeSettled, 1, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(tr.Path(), spoil(append([]byte(nil), good...)), 0o600); err != nil {
				t.Fatal(err)
			}
			var corrupt *CorruptError
			if _, err := Open(folder, "g", "orders", ""); !errors.As(err, &corrupt) || corrupt.Path != tr.Path() {
				t.Errorf("opened: %v", err)
			}
		})
	}
	// A slot that is lost leaves the other one.
	if err := os.WriteFile(tr.Path(), good, 0o600); err != nil {
		t.Fatal(err)
	}
	tr = opened(t, folder, "g", "orders")
	if err := tr.Begin(Place{Created: 1, Offset: 999}); err != nil {
		t.Fatal(err)
	}
	closed(t, tr)
	f, err := os.OpenFile(tr.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff}, slotsAt+slotSize+5); err != nil {
		t.Fatal(err)
	}
	f.Close()
	tr = opened(t, folder, "g", "orders")
	if tr.Next().Offset != 128 {
		t.Errorf("next %v", tr.Next())
	}
	closed(t, tr)
}

// withChange adds a change to the position that b is.
func withChange(b []byte, body ...byte) []byte {
	s, err := decodeSlot(b[slotsAt:])
	if err != nil {
		panic(err)
	}
	c := append(make([]byte, changeHead), body...)
	sealChange(c, s.sum)
	return append(b[:slotsAt+s.end], c...)
}

// The disk being full loses nothing: what could not be written is written later,
// or comes again.
func TestWritesThatFail(t *testing.T) {
	s, d := stream(10), &memory{}
	tr := mustOpen(t, d)
	d.fail, d.short = 1, 30
	if err := tr.Begin(s[0].Place); !errors.Is(err, errFull) {
		t.Fatalf("begin: %v", err)
	}
	if again := mustOpen(t, d.again()); !again.Fresh() {
		t.Error("half a state makes a position")
	}
	es := tr.Deliver(nil, s[:4], s[4].Place)
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	d.fail, d.short = 1, 5
	vs := []Verdict{{Entry: es[0]}, {Entry: es[1], Requeue: true}}
	if err := tr.Settle(vs); !errors.Is(err, errFull) || vs[0].Outcome != Done || vs[1].Outcome != Done {
		t.Fatalf("settle: %v, %+v", err, vs)
	}
	if n := mustOpen(t, d.again()).Unsettled(); n != 4 {
		t.Errorf("%d unsettled on disk, want 4", n)
	}
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	want := []saved{{s[1].Place, 1}, {s[2].Place, 1}, {s[3].Place, 1}}
	if diff := cmp.Diff(want, pending(mustOpen(t, d.again())), cmp.AllowUnexported(saved{})); diff != "" {
		t.Errorf("unsettled (-want +got):\n%s", diff)
	}
}
