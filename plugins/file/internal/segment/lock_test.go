// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// childPath names the path that a process of this test locks until it is
// killed.
const childPath = "SEGMENT_TEST_LOCK"

func holdLock() {
	if _, err := AcquireLock(os.Getenv(childPath), "endpoint child"); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	fmt.Fprintln(os.Stdout, "locked")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func lock(t *testing.T, path, owner string) *Lock {
	t.Helper()
	l, err := AcquireLock(path, owner)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestASecondWriterIsRefusedByName(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	link := filepath.Join(folder(t), "link.ss")
	touch(t, path)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	l := lock(t, path, "endpoint audit")
	for _, p := range []string{path, link} {
		_, err := AcquireLock(p, "endpoint other")
		var held *LockedError
		if !errors.As(err, &held) {
			t.Fatalf("%s: got %v", p, err)
		}
		if held.Path != path || held.Owner != "endpoint audit" || held.PID != os.Getpid() {
			t.Errorf("%s: got %+v", p, held)
		}
		for _, want := range []string{path, "endpoint audit", fmt.Sprint(os.Getpid())} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %q", err, want)
			}
		}
	}
	unlock(t, l)
	if _, err := os.Stat(path + LockSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
	unlock(t, lock(t, link, ""))
}

func TestAKilledProcessLeavesNoObstacle(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childPath+"="+path)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	_, err = AcquireLock(path, "endpoint mine")
	var held *LockedError
	if !errors.As(err, &held) || held.PID != child.Process.Pid || held.Owner != "endpoint child" {
		t.Errorf("while the child lives: got %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if _, err := os.Stat(path + LockSuffix); err != nil {
		t.Fatalf("the killed child's file: %v", err)
	}
	l := lock(t, path, "x") // shorter than the text that stands there
	b, err := os.ReadFile(path + LockSuffix)
	if want := fmt.Sprintf("%d\nx\n", os.Getpid()); err != nil || string(b) != want {
		t.Errorf("lock file: got %q, %v, want %q", b, err, want)
	}
	unlock(t, l)
}

func TestUnlockLeavesSomebodyElsesFile(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	first := lock(t, path, "first")
	if err := os.Remove(path + LockSuffix); err != nil {
		t.Fatal(err)
	}
	second := lock(t, path, "second")
	unlock(t, first)
	_, err := AcquireLock(path, "third")
	var held *LockedError
	if !errors.As(err, &held) || held.Owner != "second" {
		t.Errorf("got %v", err)
	}
	unlock(t, second)
}

func TestWhatALockMayHaveLeftIsInNobodysWay(t *testing.T) {
	for _, text := range []string{"", "12", "12\n", "99999999999999999999\nx", "\x00\x00\x00", "7\n" + strings.Repeat("x", 4000)} {
		path := filepath.Join(folder(t), "orders.ss")
		if err := os.WriteFile(path+LockSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		unlock(t, lock(t, path, strings.Repeat("two\nlines", 1000)))
	}
	if _, err := AcquireLock(filepath.Join(folder(t), "missing", "orders.ss"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
}

func TestTheTextOfAHeldLockMayBeAnything(t *testing.T) {
	for _, text := range []string{"", "\n", "text", "-", "99999999999999999999\nx", strings.Repeat("x", 1<<20)} {
		path := filepath.Join(folder(t), "orders.ss")
		l := lock(t, path, "")
		if err := os.WriteFile(path+LockSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := AcquireLock(path, "")
		var held *LockedError
		if !errors.As(err, &held) || held.Owner != "" {
			t.Errorf("%.20q: got %v", text, err)
		}
		unlock(t, l)
	}
}

// What has the name of the lock and is none stays as it is.
func TestSomebodyElsesFileIsNoLock(t *testing.T) {
	refused := func(path string) {
		t.Helper()
		_, err := AcquireLock(path, "")
		var way *InTheWayError
		if !errors.As(err, &way) || way.Path != path+LockSuffix {
			t.Errorf("got %v", err)
		}
	}
	for _, text := range []string{"\n", "text", "-", "12 files\n", "Ss\x01", strings.Repeat("7", 5000)} {
		path := filepath.Join(folder(t), "orders.ss")
		if err := os.WriteFile(path+LockSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(path)
		if b, err := os.ReadFile(path + LockSuffix); err != nil || string(b) != text {
			t.Errorf("%.20q has become %.20q, %v", text, b, err)
		}
	}
	for _, make := range []func(path string) error{
		func(path string) error { return os.Mkdir(path, 0o700) },
		func(path string) error { return os.Symlink("elsewhere", path) },
		func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(folder(t), "orders.ss")
		if err := make(path + LockSuffix); err != nil {
			t.Fatal(err)
		}
		refused(path)
	}
}

// Holders that come and go remove the file under those who are just opening it.
func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	var holders, rounds atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for rounds.Load() < 500 {
				l, err := AcquireLock(path, "x")
				var held *LockedError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				rounds.Add(1)
				holders.Add(-1)
				unlock(t, l)
			}
		})
	}
	wg.Wait()
}
