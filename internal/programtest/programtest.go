// SPDX-License-Identifier: Apache-2.0

// Package programtest builds programs of this module for tests, each once for all
// packages and runs.
package programtest

import (
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
)

// built holds what Path has built in this test binary.
var built sync.Map // import path -> func() (string, error)

// Path builds a program of this module and returns its path, whose base name is
// the last element of the import path. Beside it are programs of other tests;
// Folder makes a folder of chosen ones.
func Path(tb testing.TB, importPath string) string {
	tb.Helper()
	f, _ := built.LoadOrStore(importPath, sync.OnceValues(func() (string, error) {
		dir, err := build(importPath)
		return filepath.Join(dir, filepath.Base(importPath)), err
	}))
	path, err := f.(func() (string, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Folder builds programs of this module into a folder, as a user has them. An
// import path may begin with "./", which is the module's folder.
func Folder(dir string, importPaths ...string) error {
	from, err := build(importPaths...)
	if err != nil {
		return err
	}
	for _, p := range importPaths {
		name := filepath.Base(p)
		if err := put(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("put %s into %s: %w", p, dir, err)
		}
	}
	return nil
}

// put makes a file another name of a program, or a copy where there cannot be
// one.
func put(program, path string) error {
	if os.Link(program, path) == nil {
		return nil
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o700) //nolint:gosec // it is executed
}

// build builds programs and returns the folder that they are in.
func build(importPaths ...string) (dir string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err = cacheFolder(root)
	if err != nil {
		return "", err
	}
	// What go build finds up to date it does not link again. As it need not replace
	// a file in one step, tests run another name of it.
	linked := filepath.Join(dir, "linked")
	if err := os.MkdirAll(linked, 0o700); err != nil {
		return "", err
	}
	// Test binaries of several packages run at once; one builds at a time.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("build %v: %w", importPaths, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build %v: lock %s: %w", importPaths, dir, err)
	}
	cmd := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", linked + string(filepath.Separator)}, importPaths...)...)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // as make builds them, so that they are compiled once
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %v: %w\n%s", importPaths, err, out)
	}
	for _, p := range importPaths {
		name := filepath.Base(p)
		if err := publish(filepath.Join(linked, name), filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("build %s: %w", p, err)
		}
	}
	return dir, nil
}

// publish makes path a name of what was linked, in one step: a program of another
// test that runs keeps the old file.
func publish(linked, path string) error {
	is, err := os.Stat(linked)
	if err != nil {
		return err
	}
	if was, err := os.Stat(path); err == nil && os.SameFile(is, was) {
		return nil
	}
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := put(linked, next); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// moduleRoot is the folder of this module.
func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("find the module's folder: no caller")
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), "..", ".."))
}

// cacheFolder is a folder of this user and checkout.
func cacheFolder(root string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "longshore-test", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:16])
	return dir, os.MkdirAll(dir, 0o700)
}
