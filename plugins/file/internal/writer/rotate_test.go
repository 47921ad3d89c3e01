// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// all takes all files of a path apart, and checks that they were created one
// after the other.
func all(t testing.TB, path string) []parsed {
	t.Helper()
	list, err := segment.List(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []parsed
	created := int64(0)
	for _, s := range list {
		f, err := segment.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		if f.Header.Created <= created {
			t.Errorf("%s was created at %d, the one before at %d", s.Path, f.Header.Created, created)
		}
		created = f.Header.Created
		_ = f.Close()
		out = append(out, parse(t, s.Path)...)
	}
	return out
}

func names(t testing.TB, path string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestRotationBySize(t *testing.T) {
	for _, sync := range []Sync{SyncNone, SyncInterval, SyncEach} {
		t.Run(fmt.Sprint(sync), func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			o := Options{RotateBytes: 4096, Interval: 1024, Sync: sync, Now: (&clock{ms: born}).now}
			w := open(t, path, o)
			var want []parsed
			for i := range 40 {
				if i == 20 {
					closed(t, w)
					w = open(t, path, o)
				}
				body := strings.Repeat("x", 50*i%700)
				key := []string{"a", "b"}[i%2]
				got := put(t, w, plain(key, body)...)
				want = append(want, parsed{key, uint64(i/2 + 1), body})
				if got[0] != uint64(i/2+1) {
					t.Fatalf("record %d: sequence %d", i, got[0])
				}
			}
			closed(t, w)
			if d := cmp.Diff(want, messages(all(t, path))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			list, _ := segment.List(path)
			if len(list) < 4 {
				t.Errorf("%d files", len(list))
			}
			primed := uint64(0)
			for i, s := range list {
				if int(s.Number) != i+1 {
					t.Errorf("file %d has the number %d", i, s.Number)
				}
				if fi, err := os.Stat(s.Path); err != nil || fi.Size() > o.RotateBytes {
					t.Errorf("%s: %d bytes, %v", s.Path, fi.Size(), err)
				}
				if first := parse(t, s.Path)[0]; first.Key != format.PrimeKey || first.Sequence <= primed {
					t.Errorf("%s begins with %+v", s.Path, first)
				} else {
					primed = first.Sequence
				}
			}
		})
	}
}

func TestABatchGoesOnInTheNextFile(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{RotateBytes: 1000})
	body := strings.Repeat("x", 300)
	got := put(t, w, plain("a", body, body, body, body, body)...)
	if d := cmp.Diff([]uint64{1, 2, 3, 4, 5}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// A record that is longer than a file may be has one of its own.
	long := strings.Repeat("y", 2000)
	put(t, w, plain("a", long, body)...)
	closed(t, w)
	if got := messages(all(t, path)); len(got) != 7 || got[5].Payload != long {
		t.Errorf("got %d records", len(got))
	}
	if list, _ := segment.List(path); len(list) != 5 {
		t.Errorf("got %d files", len(list))
	}
}

func TestRotationByAge(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	now := time.UnixMilli(born)
	o := Options{RotateAge: time.Hour, Now: func() time.Time { return now }}
	w := open(t, path, o)
	now = now.Add(2 * time.Hour) // a file without records is not left
	put(t, w, plain("a", "1")...)
	now = now.Add(time.Minute)
	put(t, w, plain("a", "2")...)
	closed(t, w)
	w = open(t, path, o)
	now = now.Add(59 * time.Minute)
	put(t, w, plain("a", "3")...)
	closed(t, w)
	var files []int
	list, _ := segment.List(path)
	for _, s := range list {
		files = append(files, len(messages(parse(t, s.Path))))
	}
	if d := cmp.Diff([]int{1, 2}, files); d != "" {
		t.Errorf("records of the files (-want +got)\n%s", d)
	}
}

func TestOldFilesAreRemovedAndTheirKeysAreNot(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	o := Options{RotateBytes: 1000, Keep: 2}
	w := open(t, path, o)
	put(t, w, plain("rare", "1")...)
	for range 20 {
		put(t, w, plain("a", strings.Repeat("x", 500))...)
	}
	closed(t, w)
	list, _ := segment.List(path)
	if len(list) != 3 || list[0].Number != 18 {
		t.Errorf("got %v", list)
	}
	w = open(t, path, o)
	if got := put(t, w, plain("rare", "2")...); got[0] != 2 {
		t.Errorf("a key of a removed file goes on with %d", got[0])
	}
}

func TestAnEndMarkIsLeftOutOfRotatedFiles(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	o := Options{RotateBytes: 300, EndMark: true}
	w := open(t, path, o)
	put(t, w, plain("a", "1")...)
	closed(t, w)
	w = open(t, path, o)
	put(t, w, plain("a", strings.Repeat("x", 200))...)
	closed(t, w)
	for i, r := range all(t, path) {
		if r.Key == format.EndKey && i != 4 {
			t.Errorf("record %d is an end mark", i)
		}
	}
}

func TestWithRotationTheSizeLimitRotates(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{MaxBytes: 1000, RotateAge: 365 * 24 * time.Hour})
	for range 5 {
		put(t, w, plain("a", strings.Repeat("x", 600))...)
	}
	var limit *LimitError
	if err := refused(t, w, plain("a", strings.Repeat("x", 1000))...); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
	put(t, w, plain("a", "fits")...)
	closed(t, w)
	if got := messages(all(t, path)); len(got) != 6 || got[5].Sequence != 6 {
		t.Errorf("got %d records", len(got))
	}
}

// A rotation may be cut short anywhere; the next writer finishes it or takes it
// back, and no key loses its place.
func TestRotationsCutShortAreMended(t *testing.T) {
	next := func(path string) string { return path + nextSuffix }
	steps := []struct {
		name  string
		steps func(w *Writer) error
		files int
	}{
		{"part of the next file", func(w *Writer) error {
			return os.WriteFile(next(w.path), []byte("Ss\x01"), 0o600)
		}, 1},
		{"the next file", func(w *Writer) error {
			f, _, err := w.makeNext(time.Now())
			return errors.Join(err, f.Close())
		}, 1},
		{"part of the side file", func(w *Writer) error {
			f, _, err := w.makeNext(time.Now())
			return errors.Join(err, f.Close(), os.WriteFile(w.path+sideSuffix+nextSuffix, []byte(sideMagic+"part"), 0o600))
		}, 1},
		{"the side file", func(w *Writer) error {
			f, s, err := w.makeNext(time.Now())
			if err == nil {
				_, err = w.writeSide(s, f)
			}
			return errors.Join(err, f.Close())
		}, 2},
		{"the side file, and then a foreign write", func(w *Writer) error {
			f, s, err := w.makeNext(time.Now())
			if err == nil {
				_, err = w.writeSide(s, f)
			}
			more := format.AppendRecord(nil, format.Head{Key: "foreign", Sequence: 1, Time: born}, nil)
			_, err2 := w.file.Write(more)
			return errors.Join(err, err2, f.Close())
		}, 1},
		{"one name", func(w *Writer) error {
			f, s, err := w.makeNext(time.Now())
			if err == nil {
				_, err = w.writeSide(s, f)
			}
			return errors.Join(err, f.Close(), os.Rename(w.path, segment.Rotated(w.path, w.file.Number)))
		}, 2},
		{"both names", func(w *Writer) error {
			f, s, err := w.makeNext(time.Now())
			if err == nil {
				_, err = w.writeSide(s, f)
			}
			return errors.Join(err, f.Close(), w.changeNames(w.file.Number))
		}, 2},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			w := open(t, path, Options{RotateBytes: 1 << 20})
			put(t, w, plain("a", "1", "2")...)
			put(t, w, plain("b", "3")...)
			if err := step.steps(w); err != nil {
				t.Fatal(err)
			}
			kill(t, w)
			w = open(t, path, Options{Existing: true})
			if got := put(t, w, append(plain("a", "4"), plain("b", "5")...)...); got[0] != 3 || got[1] != 2 {
				t.Errorf("got %v", got)
			}
			closed(t, w)
			want := []parsed{{"a", 1, "1"}, {"a", 2, "2"}, {"b", 1, "3"}, {"a", 3, "4"}, {"b", 2, "5"}}
			var got []parsed
			for _, r := range messages(all(t, path)) {
				if r.Key != "foreign" {
					got = append(got, r)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if list, _ := segment.List(path); len(list) != step.files {
				t.Errorf("files: %v", names(t, path))
			}
			if _, err := os.Stat(next(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("files: %v", names(t, path))
			}
		})
	}
}

// A rotation that fails leaves all as it was, and the next try may succeed.
func TestAFailedRotationIsTakenBack(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{RotateBytes: 500})
	body := strings.Repeat("x", 300)
	put(t, w, plain("a", body)...)
	for _, obstacle := range []string{segment.Rotated(path, 1), path + nextSuffix, path + sideSuffix + nextSuffix} {
		if err := os.Mkdir(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		var failed *WriteError
		if err := refused(t, w, plain("a", body)...); !errors.As(err, &failed) {
			t.Errorf("%s: got %v", obstacle, err)
		}
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
	}
	if got := put(t, w, plain("a", body)...); got[0] != 2 {
		t.Errorf("got %d", got)
	}
	closed(t, w)
	if got := messages(all(t, path)); len(got) != 2 {
		t.Errorf("got %d records", len(got))
	}
}

// Files that happen to have the names of this writer's stay as they are.
func TestNobodyElsesFilesAreTouched(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{RotateBytes: 500})
	put(t, w, plain("a", "1")...)
	closed(t, w)
	before := contents(t, path)
	for _, text := range []string{"hello", string(before) + "more", strings.Repeat("\x00", 200), strings.Repeat("Ss\x01", 100)} {
		writeFile(t, path+nextSuffix, []byte(text))
		_, err := Open(t.Context(), path, Options{})
		var inTheWay *InTheWayError
		if !errors.As(err, &inTheWay) || inTheWay.Path != path+nextSuffix {
			t.Errorf("%.20q: got %v", text, err)
		}
		same(t, contents(t, path+nextSuffix), []byte(text))
	}
	for _, part := range []string{"", "S", "Ss\x01", "\x00\x00\x00\x00", string(before[:startLen])} { // these may be this writer's
		writeFile(t, path+nextSuffix, []byte(part))
		closed(t, open(t, path, Options{}))
	}
	same(t, contents(t, path), before)
	writeFile(t, path+sideSuffix, []byte("hello"))
	w = open(t, path, Options{RotateBytes: 500})
	body := strings.Repeat("x", 400)
	var inTheWay *InTheWayError
	if err := refused(t, w, plain("a", body)...); !errors.As(err, &inTheWay) || inTheWay.Path != path+sideSuffix {
		t.Errorf("got %v", err)
	}
	same(t, contents(t, path+sideSuffix), []byte("hello"))
	if err := os.Remove(path + sideSuffix); err != nil {
		t.Fatal(err)
	}
	put(t, w, plain("a", body)...)
	closed(t, w)
}

func TestTheActiveFileMayBeMissing(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{RotateBytes: 500})
	put(t, w, plain("a", strings.Repeat("x", 300), strings.Repeat("y", 300))...)
	closed(t, w)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w = open(t, path, Options{Now: func() time.Time { return time.UnixMilli(born) }}) // a clock that went back
	if got := put(t, w, plain("a", "2")...); got[0] != 2 {
		t.Errorf("got %d", got)
	}
	closed(t, w)
	if got := messages(all(t, path)); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}
