// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

// narrow is a folder with little room, until makeRoom is called.
type narrow struct {
	dir      string
	cause    error // of writes that find no room
	makeRoom func()
}

// aloneKey is set for a process that runs one test.
const aloneKey = "WRITER_TEST_ALONE"

// alone runs the test in a process of its own, since limits of a process are
// also those of what reports its tests. It is false in the first process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneKey) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), aloneKey+"=1")
	out, err := child.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// longestFile narrows by a limit on the length of files, which anyone may set.
func longestFile(t *testing.T, limit uint64) narrow {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = limit
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	widen := func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &before) }
	t.Cleanup(widen)
	return narrow{dir: folder(t), cause: unix.EFBIG, makeRoom: widen}
}

// What is said of a write that failed names the file once.
func TestFailedWritesNameTheFileOnce(t *testing.T) {
	cause := &fs.PathError{Op: "write", Path: "/data/orders.ss", Err: unix.ENOSPC}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&WriteError{Path: cause.Path, Offset: 7, Err: cause}, "write /data/orders.ss at offset 7: no space left on device; nothing of it is left in the file"},
		{&SyncError{Path: cause.Path, Err: cause}, "sync /data/orders.ss: no space left on device: what was written since the last sync may be lost; look after the disk and start again"},
	} {
		if got := tt.err.Error(); got != tt.want || !errors.Is(tt.err, unix.ENOSPC) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Records that find no room leave no trace: not in the file, not in the
// sequences, not in what beacons say. When there is room, writing goes on.
func TestWantOfRoomIsSurvived(t *testing.T) {
	if !alone(t) {
		return
	}
	kinds := map[string]func(t *testing.T) narrow{
		"longest file": func(t *testing.T) narrow { return longestFile(t, 300<<10) },
		"full disk":    fullDisk,
	}
	for name, narrow := range kinds {
		for _, sync := range []Sync{SyncNone, SyncInterval, SyncEach} {
			t.Run(fmt.Sprint(name, " ", sync), func(t *testing.T) {
				room := narrow(t)
				path := filepath.Join(room.dir, "orders.ss")
				o := Options{Interval: 1024, Sync: sync, Now: func() time.Time { return time.UnixMilli(born) }}
				w := open(t, path, o)
				want := formattest.New(1024)
				want.Header = format.Header{Name: "orders.ss", Created: born, Interval: 1024}
				want.Bytes = want.Header.Append(nil)
				add := func(key, payload string, sequence uint64) {
					want.Put(format.Head{Key: key, Sequence: sequence, Time: born}, []byte(payload))
				}
				add(format.PrimeKey, primePayload, 1)
				refusals, parts, sequences := 0, 0, map[string]uint64{}
				for n := 0; refusals < 3 || n%10 != 0; n++ {
					if n > 10_000 {
						t.Fatal("room for everything")
					}
					if refusals == 3 {
						room.makeRoom()
					}
					batch := plain(fmt.Sprint("key.", n%7), strings.Repeat("x", 37*n%1500), "y")
					for i := range 40 { // keys that come or do not
						batch = append(batch, plain(fmt.Sprintf("only.%d.%d", n, i), strings.Repeat("z", 53*i))...)
					}
					got, errs := try(w, batch)
					for i, e := range batch {
						if errs[i] != nil {
							break
						}
						sequences[e.Key]++
						if got[i] != sequences[e.Key] {
							t.Fatalf("batch %d: %s has the sequence %d, want %d", n, e.Key, got[i], sequences[e.Key])
						}
						add(e.Key, string(e.Payload), got[i])
					}
					if errors.Join(errs...) == nil {
						continue
					}
					refusals++
					for i, err := range errs[slices.IndexFunc(errs, func(err error) bool { return err != nil }):] {
						var failed *WriteError
						if !errors.As(err, &failed) || !failed.Transient || !errors.Is(err, room.cause) || failed.Offset != int64(len(want.Bytes)) {
							t.Fatalf("batch %d, %d behind the first refusal: got %v", n, i, err)
						}
					}
					if len(errs) > 1 && errs[0] == nil {
						parts++
					}
					same(t, contents(t, path), want.Bytes)
				}
				closed(t, w)
				same(t, contents(t, path), want.Bytes)
				if parts == 0 {
					t.Error("no batch was written in part")
				}
				t.Logf("%d bytes, %d refusals, %d of them of a part", len(want.Bytes), refusals, parts)
			})
		}
	}
}

func TestWantOfRoomDuringARotationIsSurvived(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, name := range []string{"longest file", "full disk"} {
		t.Run(name, func(t *testing.T) {
			room := narrow{dir: folder(t)}
			if name == "full disk" {
				room = fullDisk(t)
			}
			path := filepath.Join(room.dir, "orders.ss")
			w := open(t, path, Options{RotateBytes: 64 << 10})
			body := strings.Repeat("x", 60<<10)
			put(t, w, plain("a", body)...)
			if errors.Is(room.cause, unix.ENOSPC) {
				useUp(t, room.dir)
			} else {
				room = longestFile(t, 100)
			}
			before := contents(t, path)
			var failed *WriteError
			for range 3 {
				if err := refused(t, w, plain("a", body)...); !errors.As(err, &failed) || !failed.Transient {
					t.Fatalf("got %v", err)
				}
			}
			same(t, contents(t, path), before)
			room.makeRoom()
			if got := put(t, w, plain("a", body)...); got[0] != 2 {
				t.Errorf("got %v", got)
			}
			closed(t, w)
			if got := messages(all(t, path)); len(got) != 2 {
				t.Errorf("got %d records", len(got))
			}
		})
	}
}

// useUp takes all the room that a folder's file system has.
func useUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast.2"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOtherFailuresAreNoWantOfRoom(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{})
	put(t, w, plain("a", "1")...)
	writable := w.file.File
	readable, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readable.Close()
	w.file.File = readable
	var failed *WriteError
	if err := refused(t, w, plain("a", "2")...); !errors.As(err, &failed) || failed.Transient || !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
	w.file.File = writable
	if got := put(t, w, plain("a", "2")...); got[0] != 2 {
		t.Errorf("got %v", got)
	}
}
