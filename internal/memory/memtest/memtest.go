// SPDX-License-Identifier: Apache-2.0

// Package memtest starts memory brokers for tests and builds the plugin that
// dials them.
package memtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// Bench is a broker with what a test needs to attach its plugin.
type Bench struct {
	*memory.Broker
	Path     string            // of the plugin's binary
	Address  string            // of the broker's socket
	Settings settings.Settings // of an endpoint; With and WithDestination give it capabilities
}

// Start returns a broker that listens on a socket and is closed at the end of
// the test, which fails when the broker's account does not add up.
func Start(tb testing.TB) *Bench {
	tb.Helper()
	b := Broker(tb)
	// A test's own folder can be too long for a socket.
	dir, err := os.MkdirTemp("", "ls-mem-")
	if err != nil {
		tb.Fatalf("make the broker's folder: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	address := filepath.Join(dir, "broker")
	if err := b.Listen(address); err != nil {
		tb.Fatal(err)
	}
	return &Bench{Broker: b, Path: Plugin(tb), Address: address, Settings: settings.Settings{Address: address}}
}

// Broker returns a broker for transports in the test's own process.
func Broker(tb testing.TB) *memory.Broker {
	tb.Helper()
	b := memory.New()
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close the memory broker: %v", err)
		}
		if err := b.Account().Check(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// Plugin returns the path of the memory plugin's binary, built once a test
// binary.
func Plugin(tb testing.TB) string {
	tb.Helper()
	return Binary(tb, "github.com/longshore-go/longshore/internal/memory/longshore-transport-memory")
}

// built holds what Binary has built in this test binary.
var built sync.Map // import path -> func() (string, error)

// Binary builds a command of this module and returns its path, whose base name
// is the last element of the import path. The file is kept in a cache folder of
// the user, where go build finds it up to date the next time.
func Binary(tb testing.TB, importPath string) string {
	tb.Helper()
	f, _ := built.LoadOrStore(importPath, sync.OnceValues(func() (string, error) { return build(importPath) }))
	path, err := f.(func() (string, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func build(importPath string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := cacheFolder(root)
	if err != nil {
		return "", err
	}
	// Test binaries of several packages run at once; one builds at a time.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build %s: lock %s: %w", importPath, dir, err)
	}
	name := filepath.Base(importPath)
	path, fresh := filepath.Join(dir, name), filepath.Join(dir, name+".new")
	cmd := exec.Command("go", "build", "-o", fresh, importPath)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // as make builds it, so that it is compiled once
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", importPath, err, out)
	}
	if same(path, fresh) {
		return path, os.Remove(fresh)
	}
	// A running plugin of another test keeps the old file.
	return path, os.Rename(fresh, path)
}

// moduleRoot is the folder of this module.
func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("find the module's folder: no caller")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", ".."), nil
}

// cacheFolder is a folder of this user and checkout.
func cacheFolder(root string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "longshore-test", fmt.Sprintf("%x", sha256.Sum256([]byte(abs)))[:16])
	return dir, os.MkdirAll(dir, 0o700)
}

func same(a, b string) bool {
	x, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	y, err := os.ReadFile(b)
	return err == nil && bytes.Equal(x, y)
}
