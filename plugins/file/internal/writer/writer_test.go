// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

func TestSequencesGoOnPerKeyOverReopening(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	got := put(t, w, append(plain("a", "1", "2"), append(plain("b", "3"), plain("a", "4")...)...)...)
	if d := cmp.Diff([]uint64{1, 2, 1, 3}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	closed(t, w)
	w = open(t, path, Options{Existing: true})
	if got := put(t, w, plain("a", "5")...); got[0] != 4 {
		t.Errorf("after reopening: got %d", got)
	}
	if got := put(t, w, plain("c", "6")...); got[0] != 1 {
		t.Errorf("a new key: got %d", got)
	}
	closed(t, w)
	want := []parsed{
		{format.PrimeKey, 1, "1"},
		{"a", 1, "1"}, {"a", 2, "2"}, {"b", 1, "3"}, {"a", 3, "4"}, {"a", 4, "5"}, {"c", 1, "6"},
	}
	if d := cmp.Diff(want, parse(t, path)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestOnlyOneWriterHasAPath(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{Owner: "endpoint audit"})
	_, err := Open(t.Context(), path, Options{Owner: "endpoint other"})
	var held *segment.LockedError
	if !errors.As(err, &held) || held.Owner != "endpoint audit" || held.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	closed(t, w)
	closed(t, open(t, path, Options{}))
}

func TestExistingOnlyCreatesNothing(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	_, err := Open(t.Context(), path, Options{Existing: true})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestFilesThatHoldNothingAreBegun(t *testing.T) {
	header := format.Header{Name: "other.ss", Created: born, Interval: 2048}
	for name, b := range map[string][]byte{"empty": nil, "header alone": header.Append(nil)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			writeFile(t, path, b)
			w := open(t, path, Options{Existing: true, Interval: 4096})
			if b != nil && w.file.Header != header {
				t.Errorf("header: got %+v", w.file.Header)
			}
			if b == nil && w.file.Header.Interval != 4096 {
				t.Errorf("header: got %+v", w.file.Header)
			}
			put(t, w, plain("a", "1")...)
			closed(t, w)
			want := []parsed{{format.PrimeKey, 1, "1"}, {"a", 1, "1"}}
			if d := cmp.Diff(want, parse(t, path)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestFilesOfOtherKindsStayAsTheyAre(t *testing.T) {
	good := format.Header{Name: "orders.ss", Created: born, Interval: 1024}.Append(nil)
	version := bytes.Clone(good)
	version[2] = 9
	for name, b := range map[string][]byte{
		"text": []byte(strings.Repeat("hello\n", 40)), "part of a header": good[:60], "version": version,
		"rubbish behind the header": append(bytes.Clone(good), strings.Repeat("\xff", 300)...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			writeFile(t, path, b)
			_, err := Open(t.Context(), path, Options{})
			var kind *segment.KindError
			var damaged *DamagedError
			if !errors.As(err, &kind) && !errors.As(err, &damaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			same(t, contents(t, path), b)
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{Interval: 1000}, {Sync: 7}, {MaxBytes: -1}, {SyncEvery: -1}, {RotateBytes: -1}, {RotateAge: -1}, {Keep: -1},
	} {
		if _, err := Open(t.Context(), filepath.Join(folder(t), "orders.ss"), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestEntriesThatCannotBeRecordsAreRefusedAlone(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	batch := []Entry{
		{Key: "a", Payload: []byte("first")},
		{Key: ""}, {Key: "a b"}, {Key: strings.Repeat("k", 250)}, {Key: format.EndKey}, {Key: format.PrimeKey},
		{Key: "a", Payload: make([]byte, format.MaxPayload+1)},
		{Key: strings.Repeat("k", 249), Payload: []byte("last")},
	}
	_, errs := try(w, batch)
	for i, err := range errs {
		var key *KeyError
		var size *SizeError
		switch i {
		case 0, len(batch) - 1:
			if err != nil {
				t.Errorf("entry %d: %v", i, err)
			}
		case 6:
			if !errors.As(err, &size) || size.Size != format.MaxPayload+1 {
				t.Errorf("entry %d: %v", i, err)
			}
		default:
			if !errors.As(err, &key) || key.Key != batch[i].Key {
				t.Errorf("entry %d: %v", i, err)
			}
		}
	}
	closed(t, w)
	if got := messages(parse(t, path)); len(got) != 2 || got[1].Payload != "last" {
		t.Errorf("got %v", got)
	}
}

func TestPayloadsThatLookLikeEnvelopesAreWrapped(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	batch := []Entry{
		{Key: "a", Payload: []byte("rs1:")}, {Key: "a", Payload: nil}, {Key: "a", Payload: []byte{0xff}},
		{Key: "a", Payload: []byte("x"), Headers: core.Headers{{Name: "n", Value: []byte("two\nlines")}}},
	}
	put(t, w, batch...)
	closed(t, w)
	for i, r := range messages(parse(t, path)) {
		got := entryOf(t, "a", []byte(r.Payload))
		if !bytes.Equal(got.Payload, batch[i].Payload) || fmt.Sprint(got.Headers) != fmt.Sprint(batch[i].Headers) {
			t.Errorf("record %d: got %q %v", i, got.Payload, got.Headers)
		}
	}
}

func TestALongBatchGoesInSeveralWrites(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	writes := 0
	w := open(t, path, Options{Written: func() { writes++ }})
	body := bytes.Repeat([]byte("x"), 3<<20)
	batch := make([]Entry, 7)
	for i := range batch {
		batch[i] = Entry{Key: "a", Payload: body}
	}
	got := put(t, w, batch...)
	if writes != 3 || got[6] != 7 {
		t.Errorf("%d writes, sequences %v", writes, got)
	}
	if cap(w.block.bytes) > maxKept {
		t.Errorf("a buffer of %d bytes is kept", cap(w.block.bytes))
	}
	closed(t, w)
	if got := messages(parse(t, path)); len(got) != 7 || len(got[6].Payload) != len(body) {
		t.Errorf("got %d records", len(got))
	}
}

func TestTheSizeLimitIsForGood(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	rec := int64(format.RecordLen("a", 100))
	o := Options{MaxBytes: startLen + 3*rec, EndMark: true}
	w := open(t, path, o)
	err := refused(t, w, Entry{Key: "a", Payload: make([]byte, 1000)}) // it fits no file of that size
	var limit *LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("got %v", err)
	}
	body := strings.Repeat("x", 100)
	_, errs := try(w, plain("a", body, body, body, body, body))
	for i, err := range errs {
		if i < 3 && err != nil || i >= 3 && !errors.As(err, &limit) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if limit.Path != path || limit.Limit != o.MaxBytes || limit.Size != o.MaxBytes || limit.Need != rec {
		t.Errorf("got %+v", limit)
	}
	if err := refused(t, w, plain("a", "")...); !errors.As(err, &limit) {
		t.Errorf("later: %v", err)
	}
	closed(t, w)
	if got := parse(t, path); len(got) != 5 || got[4].Key != format.EndKey {
		t.Errorf("got %v", got)
	}
	w = open(t, path, Options{})
	if got := put(t, w, plain("a", body)...); got[0] != 4 {
		t.Errorf("with another limit: %d", got)
	}
}

func TestAClosedWriterSaysSo(t *testing.T) {
	w := open(t, filepath.Join(folder(t), "orders.ss"), Options{})
	closed(t, w)
	if err := refused(t, w, plain("a", "1")...); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	closed(t, w)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	put(t, w, plain("a", "1")...)
	closed(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	closed(t, open(t, path, Options{}))
}

func TestSomebodyElsesWritesStopTheWriter(t *testing.T) {
	tests := map[string]func(t *testing.T, path string) error{
		"appended": func(t *testing.T, path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("x")
			return errors.Join(err, f.Close())
		},
		"cut":     func(t *testing.T, path string) error { return os.Truncate(path, 0) },
		"removed": func(t *testing.T, path string) error { return os.Remove(path) },
		"replaced": func(t *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, contents(t, path+".old"), 0o600))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			now := time.UnixMilli(born)
			w := open(t, path, Options{EndMark: true, Now: func() time.Time { return now }})
			put(t, w, plain("a", "1")...)
			if err := change(t, path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			now = now.Add(lookEvery)
			var foreign *ForeignError
			for range 2 {
				if err := refused(t, w, plain("a", "2", "3")...); !errors.As(err, &foreign) || foreign.Path != path {
					t.Errorf("got %v", err)
				}
			}
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Errorf("%d bytes became %d", len(before), len(after))
			}
		})
	}
}
