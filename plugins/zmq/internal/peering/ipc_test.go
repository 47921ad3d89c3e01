// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
)

// leave makes the socket's file of a process that was killed.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

// entries are the names in a folder.
func entries(t *testing.T, folder string) []string {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// Z-09: the old instance leaves alone what the new one has put in its place.
func TestZ09RollingRestart(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	old := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
	kept := foreign(t, "ipc://"+path, zmq4.Push)
	old.peers(t, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	young := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
	send(t, kept, "of the old one")
	zmqtest.Until(t, "a message", func() bool { return old.have() == 1 })
	old.end(t)
	if got := entries(t, folder); len(got) != 1 || got[0] != "s" {
		t.Fatalf("after the old one's end there is %q", got)
	}
	zmqtest.Python(t, `
s = ctx.socket(zmq.PUSH)
s.connect(arg[0])
for i in range(10):
    s.send_multipart([b"jobs", b"m%02d" % i])
hear()
`, "ipc://"+path)
	zmqtest.Until(t, "ten messages", func() bool { return young.have() == 10 })
	if got := old.log.with("level=WARN"); len(got) != 0 {
		t.Errorf("lines of the old one: %q", got)
	}
	young.end(t)
	if got := entries(t, folder); len(got) != 0 {
		t.Errorf("after the young one's end there is %q", got)
	}
}

func TestStaleFilesAreReplaced(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	leave(t, path)
	s := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
	send(t, foreign(t, "ipc://"+path, zmq4.Push), "m1")
	zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
	if got := entries(t, folder); len(got) != 1 {
		t.Errorf("there is %q", got)
	}
}

// Of many that find a stale file at one moment one gets the path, and is found
// there.
func TestOneOfManyGetsAStalePath(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	for range 40 {
		leave(t, path)
		const many = 6
		starts := make([]*served, many)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				s := &served{log: newLines()}
				p, err := Start(context.Background(), s.config(zmq4.Pull, bound(t, "ipc://"+path)))
				var f *core.Fault
				switch {
				case err == nil:
					s.Peering = p
					starts[i] = s
				case !errors.As(err, &f) || f.Code != core.FaultConflict:
					t.Errorf("one fails with %v", err)
				}
			})
		}
		all.Wait()
		var winner *served
		for _, s := range starts {
			if s != nil && winner != nil {
				t.Fatal("two listen on one path")
			}
			if s != nil {
				winner = s
			}
		}
		if winner == nil {
			t.Fatal("none has the path")
		}
		send(t, foreign(t, "ipc://"+path, zmq4.Push), "m1")
		zmqtest.Until(t, "a message", func() bool { return winner.have() == 1 })
		winner.end(t)
		if got := entries(t, folder); len(got) != 0 {
			t.Fatalf("in the end there is %q", got)
		}
	}
}

func TestLiveFilesAreAConflict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
	f := startFault(t, bound(t, "ipc://"+path))
	if f.Code != core.FaultConflict || !strings.Contains(f.Message, path) {
		t.Errorf("the fault is %d: %v", f.Code, f)
	}
	send(t, foreign(t, "ipc://"+path, zmq4.Push), "m1")
	zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
	if got := s.log.with("level="); len(got) != 0 {
		t.Errorf("lines of the one that is there: %q", got)
	}
}

// A live socket of another kind does not refuse, so it is not stale.
func TestDatagramSocketsAreAConflict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	other, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if f := startFault(t, bound(t, "ipc://"+path)); f.Code != core.FaultConflict || !strings.Contains(f.Message, path) {
		t.Errorf("the fault is %d: %v", f.Code, f)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// What is no socket is never touched.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path string) error
	}{
		{"regular", func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }},
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"symbolic link", func(path string) error { return os.Symlink(path+".elsewhere", path) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			f := startFault(t, bound(t, "ipc://"+path))
			if f.Code != core.FaultConflict || !strings.Contains(f.Message, path) {
				t.Errorf("the fault is %d: %v", f.Code, f)
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() {
				t.Errorf("the file is %v, %v, and was %v", after, err, before)
			}
		})
	}
}

// A file that another put there by rename is left alone, and what is removed
// under a listener's feet is no error.
func TestFilesThatChangeUnderAListener(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
		stays  bool
	}{
		{"removed", os.Remove, false},
		{"replaced", func(path string) error {
			if err := os.WriteFile(path+".new", []byte("other"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			s := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			s.end(t)
			if _, err := os.Lstat(path); (err == nil) != c.stays {
				t.Errorf("after Close: %v, stays: %t", err, c.stays)
			}
			if got := s.log.with("level=WARN"); len(got) != 0 {
				t.Errorf("lines: %q", got)
			}
		})
	}
}

func TestMissingFoldersAreNamed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	f := startFault(t, bound(t, "ipc://"+folder+"/s"))
	if f.Code != core.FaultNotFound || !strings.Contains(f.Message, folder+" does not exist") {
		t.Errorf("the fault is %d: %v", f.Code, f)
	}
}
