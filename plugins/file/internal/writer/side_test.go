// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

func exampleSide() *side {
	return &side{
		created: born, offset: 4711, digest: [32]byte{1, 2, 3}, before: born - 1, beforeSize: 9,
		keys: []key{
			{name: "a", sequence: 7, time: born + 5, last: 0xbeef, here: true},
			{name: strings.Repeat("k", 249), sequence: 1 << 63, time: -1},
		},
	}
}

func TestSideFilesComeBackAsTheyWere(t *testing.T) {
	want := exampleSide()
	b := want.encode()
	got, err := parseSide(b)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range b {
		for _, change := range []func([]byte) []byte{
			func(b []byte) []byte { b[i] ^= 0x10; return b },
			func(b []byte) []byte { return b[:i] },
			func(b []byte) []byte { return append(b, byte(i)) },
		} {
			if _, err := parseSide(change(bytes.Clone(b))); !errors.Is(err, errSide) {
				t.Fatalf("a change at %d: got %v", i, err)
			}
		}
	}
}

// What is no side file is not read whole to find that out.
func TestLongFilesAreNoSideFiles(t *testing.T) {
	const size = 256 << 20
	good := exampleSide().encode()
	for name, b := range map[string][]byte{"zeros": nil, "another kind": []byte("hello"), "a side file, lengthened": good} {
		path := filepath.Join(folder(t), "orders.ss.keys")
		writeFile(t, path, b)
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if s, err := readSide(path); !errors.Is(err, errSide) {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > size/16 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

func FuzzSideFile(f *testing.F) {
	f.Add(exampleSide().encode()[:len(exampleSide().encode())-sideTail])
	f.Add((&side{offset: 128}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		// As it is, and with an end that lets the rest be looked at.
		for _, in := range [][]byte{b, binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))} {
			s, err := parseSide(in)
			if err != nil {
				continue
			}
			again, err := parseSide(s.encode())
			if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
				t.Fatalf("%+v comes back as %+v, %v", s, again, err)
			}
		}
	})
}

// longFile writes records under a number of keys until the file is size bytes
// long, and closes it.
func longFile(t testing.TB, path string, keys int, size int64, o Options) map[string]uint64 {
	t.Helper()
	w := open(t, path, o)
	last := make(map[string]uint64)
	body := bytes.Repeat([]byte("x"), 32<<10)
	batch := make([]Entry, 64)
	for n := 0; w.size < size; {
		for i := range batch {
			batch[i] = Entry{Key: fmt.Sprintf("key.%d", n%keys), Payload: body}
			last[batch[i].Key]++
			n++
		}
		put(t, w, batch...)
	}
	closed(t, w)
	return last
}

// The first publish after reopening a long file reads its end, not all of it.
func TestReopeningReadsTheEndOfALongFile(t *testing.T) {
	const size = 64 << 20
	for _, tt := range []struct {
		keys int
		most int64
	}{{5, 2 << 20}, {1000, 2 << 20}} {
		t.Run(fmt.Sprint(tt.keys, " keys"), func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			last := longFile(t, path, tt.keys, size, Options{})
			w := open(t, path, Options{})
			for name, sequence := range last {
				if got := put(t, w, plain(name, "next")...); got[0] != sequence+1 {
					t.Fatalf("%s goes on with %d after %d", name, got[0], sequence)
				}
			}
			t.Logf("%d keys: %d of %d bytes read", tt.keys, w.read, w.size)
			if w.read > tt.most {
				t.Errorf("%d bytes were read, at most %d were expected", w.read, tt.most)
			}
			if _, err := os.Stat(path + sideSuffix); (err == nil) != (tt.keys > 100) {
				t.Errorf("side file: %v", err)
			}
		})
	}
}

func TestSideFilesThatDoNotFitAreNotUsed(t *testing.T) {
	const keys, size = 300, 3 << 20
	for name, change := range map[string]func(t *testing.T, path string) error{
		"missing":  func(_ *testing.T, path string) error { return os.Remove(path + sideSuffix) },
		"no file":  func(_ *testing.T, path string) error { return os.WriteFile(path+sideSuffix, []byte("x"), 0o600) },
		"too long": func(_ *testing.T, path string) error { return os.Truncate(path+sideSuffix, maxSide+1) },
		"another file's": func(t *testing.T, path string) error {
			s, err := readSide(path + sideSuffix)
			if err == nil {
				s.created++
				err = os.WriteFile(path+sideSuffix, s.encode(), 0o600)
			}
			return err
		},
		"other bytes": func(t *testing.T, path string) error {
			s, err := readSide(path + sideSuffix)
			if err == nil {
				s.digest[0]++
				err = os.WriteFile(path+sideSuffix, s.encode(), 0o600)
			}
			return err
		},
		"behind the end": func(t *testing.T, path string) error {
			b := contents(t, path)
			return os.Truncate(path, int64(len(b)-1)) // a torn tail
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "orders.ss")
			last := longFile(t, path, keys, size, Options{})
			before := parse(t, path)
			if err := change(t, path); err != nil {
				t.Fatal(err)
			}
			if name == "behind the end" {
				last[before[len(before)-1].Key]--
			}
			w := open(t, path, Options{})
			for key, sequence := range last {
				if got := put(t, w, plain(key, "next")...); got[0] != sequence+1 {
					t.Fatalf("%s goes on with %d after %d", key, got[0], sequence)
				}
			}
			closed(t, w)
			parse(t, path)
		})
	}
}

// What is written behind the place that the side file describes, by this writer
// before a crash or by a foreign one, is read.
func TestSideFilesMayBeOld(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	longFile(t, path, 300, 3<<20, Options{})
	w := open(t, path, Options{})
	put(t, w, append(plain("key.7", "x", "y"), plain("new", "z")...)...)
	want := w.table.list()
	kill(t, w)
	w = open(t, path, Options{})
	got := w.table.list()
	byName := func(a, b key) int { return cmp.Compare(a.name, b.name) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	for i := range want {
		if want[i].name != got[i].name || want[i].sequence != got[i].sequence || want[i].last != got[i].last || want[i].here != got[i].here {
			t.Fatalf("got %+v, want %+v", got[i], want[i])
		}
	}
	if w.read > 1<<20 {
		t.Errorf("%d bytes were read", w.read)
	}
}

// Once beacons cannot list all keys, the side file is there, before any crash.
func TestTheSideFileComesWithTheKeyThatIsOneTooMany(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{Interval: 8192})
	slots := format.Slots(8192)
	put(t, w, plain("key.0", strings.Repeat("x", 8192))...)
	for n := range slots {
		put(t, w, plain(fmt.Sprintf("key.%d", n), "x")...)
		_, err := os.Stat(path + sideSuffix)
		if want := n+2 >= slots; (err == nil) != want || !want && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d keys of %d: side file: %v", n+2, slots, err)
		}
	}
}
