// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// inTheWay checks that err names the file.
func inTheWay(t *testing.T, err error, path string) {
	t.Helper()
	var way *InTheWayError
	if !errors.As(err, &way) || way.Path != path {
		t.Errorf("got %v, want that %s is in the way", err, path)
	}
}

// What has one of the writer's names and is no file is neither waited for nor
// replaced.
func TestWhatIsNoFileIsInTheWay(t *testing.T) {
	kinds := map[string]func(path string) error{
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"device": func(path string) error { return os.Symlink(os.DevNull, path) },
	}
	for name, create := range kinds {
		for _, suffix := range []string{nextSuffix, sideSuffix, sideSuffix + nextSuffix} {
			t.Run(name+suffix, func(t *testing.T) {
				path := filepath.Join(folder(t), "orders.ss")
				closed(t, open(t, path, Options{}))
				if err := create(path + suffix); err != nil {
					t.Fatal(err)
				}
				w, err := Open(t.Context(), path, Options{RotateBytes: 500})
				if suffix == nextSuffix {
					inTheWay(t, err, path+suffix)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer closed(t, w)
				put(t, w, plain("a", "1")...)
				inTheWay(t, refused(t, w, plain("a", strings.Repeat("x", 500))...), path+suffix)
			})
		}
	}
}

// A stream of its own that has the name of a file in the making stays as it is.
func TestAnotherStreamIsNotTaken(t *testing.T) {
	for _, records := range []int{0, 10} {
		for _, missing := range []bool{true, false} {
			t.Run(fmt.Sprint(records, missing), func(t *testing.T) {
				path := filepath.Join(folder(t), "orders.ss")
				if !missing {
					closed(t, open(t, path, Options{}))
				}
				other := open(t, path+nextSuffix, Options{})
				for range records {
					put(t, other, plain("a", "1")...)
				}
				before := contents(t, path+nextSuffix)
				_, err := Open(t.Context(), path, Options{})
				inTheWay(t, err, path+nextSuffix)
				same(t, contents(t, path+nextSuffix), before)
				put(t, other, plain("a", "still there")...)
			})
		}
	}
}

func TestAFileWithASecondNameIsNotInTheMaking(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	put(t, w, plain("a", "1")...)
	closed(t, w)
	if err := os.Link(path, path+nextSuffix); err != nil {
		t.Fatal(err)
	}
	put(t, open(t, path, Options{RotateBytes: 200}), plain("a", "2")...)
	if got := messages(all(t, path)); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// What a failed rotation could not remove does not keep the next one from
// succeeding.
func TestAFileInTheMakingThatIsLeftIsReplaced(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{RotateBytes: 500})
	for i := range 3 {
		left, _, err := w.makeNext(w.o.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := left.Close(); err != nil {
			t.Fatal(err)
		}
		if got := put(t, w, plain("a", strings.Repeat("x", 300))...); got[0] != uint64(i)+1 {
			t.Errorf("got %v", got)
		}
	}
	if got := messages(all(t, path)); len(got) != 3 {
		t.Errorf("got %d records", len(got))
	}
}

// ends is a file with one record.
func ends(t *testing.T, created int64, sequence uint64) string {
	t.Helper()
	path := filepath.Join(folder(t), "orders.ss")
	b := format.Header{Name: "orders.ss", Created: created, Interval: 1024}.Append(nil)
	writeFile(t, path, format.AppendRecord(b, format.Head{Key: "a", Sequence: sequence, Time: born}, []byte(strings.Repeat("x", 100))))
	return path
}

func exhausted(t *testing.T, err error, path string) {
	t.Helper()
	var end *ExhaustedError
	if !errors.As(err, &end) || end.Path != path || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// Numbers that cannot rise any more do not begin anew.
func TestNumbersEnd(t *testing.T) {
	t.Run("sequence", func(t *testing.T) {
		path := ends(t, born, math.MaxUint64-1)
		w := open(t, path, Options{})
		if got := put(t, w, plain("a", "1")...); got[0] != math.MaxUint64 {
			t.Errorf("got %d", got[0])
		}
		exhausted(t, refused(t, w, plain("a", "2", "3")...), path)
		if got := put(t, w, plain("b", "1")...); got[0] != 1 {
			t.Errorf("got %d", got[0])
		}
	})
	t.Run("created", func(t *testing.T) {
		path := ends(t, math.MaxInt64, 1)
		w := open(t, path, Options{RotateBytes: 200})
		exhausted(t, refused(t, w, plain("a", "2")...), path)
		closed(t, w)
		put(t, open(t, path, Options{}), plain("a", "2")...)
	})
	t.Run("number", func(t *testing.T) {
		path := ends(t, born, 1)
		last := segment.Rotated(path, segment.MaxNumber)
		writeFile(t, last, format.Header{Name: "orders.ss", Created: 1, Interval: 1024}.Append(nil))
		w := open(t, path, Options{RotateBytes: 200})
		exhausted(t, refused(t, w, plain("a", "2")...), path)
	})
}

// A rotated file that cannot be read is no reason not to write.
func TestUnreadableRotatedFilesArePassed(t *testing.T) {
	for name, bad := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 4000), "another kind": "\x1f\x8b\x08" + strings.Repeat("x", 500)} {
		for _, missing := range []bool{true, false} {
			t.Run(fmt.Sprint(name, missing), func(t *testing.T) {
				path := filepath.Join(folder(t), "orders.ss")
				o := Options{RotateBytes: 500, Now: (&clock{ms: born}).now}
				w := open(t, path, o)
				for _, key := range []string{"a", "b", "c"} {
					put(t, w, plain(key, strings.Repeat("x", 300))...)
				}
				closed(t, w)
				if err := os.Remove(path + sideSuffix); err != nil {
					t.Fatal(err)
				}
				writeFile(t, segment.Rotated(path, 2), []byte(bad))
				if missing {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
				w = open(t, path, o)
				if got := put(t, w, plain("a", "2")...); got[0] != 2 {
					t.Errorf("got %d", got[0])
				}
				first, err := segment.Open(segment.Segment{Path: segment.Rotated(path, 1)})
				if err != nil {
					t.Fatal(err)
				}
				if w.file.Header.Created <= first.Header.Created {
					t.Errorf("created at %d, the one before at %d", w.file.Header.Created, first.Header.Created)
				}
				if err := first.Close(); err != nil {
					t.Error(err)
				}
				same(t, contents(t, segment.Rotated(path, 2)), []byte(bad))
			})
		}
	}
}
