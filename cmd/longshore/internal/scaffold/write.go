// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes the module into its folder, which must not be there or be empty,
// and returns what it has written. It writes all or nothing: into a folder of
// another name first. An *ArgumentError says that something given cannot be
// used.
func (m Module) Write() ([]File, error) {
	m = m.WithDefaults()
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	there, err := m.free()
	if err != nil {
		return nil, err
	}
	// Beside the folder, so that it can be renamed; within it where it is there,
	// since it may be the working directory or a file system of its own.
	beside := filepath.Dir(m.Dir)
	if there {
		beside = m.Dir
	}
	if err := os.MkdirAll(beside, 0o777); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	draft, err := os.MkdirTemp(beside, ".longshore-new-")
	if err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	whole := filepath.Join(draft, "module")
	err = fill(whole, files)
	if err == nil && there {
		err = moveAll(whole, m.Dir)
	} else if err == nil {
		err = os.Rename(whole, m.Dir)
	}
	if err != nil {
		err = fmt.Errorf("write the module: %w", err)
	}
	if err := errors.Join(err, os.RemoveAll(draft)); err != nil {
		return nil, err
	}
	return files, nil
}

// free reports whether the folder is there, and refuses one that holds
// something.
func (m Module) free() (there bool, err error) {
	refuse := func(reason string) error {
		return &ArgumentError{Argument: "--dir", Reason: fmt.Sprintf("cannot be %q: %s", m.Dir, reason), Fix: "name a folder that is not there or is empty"}
	}
	info, err := os.Stat(m.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(m.Dir); err == nil {
			return false, refuse("it is a link to nothing")
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the folder: %w", err)
	}
	if !info.IsDir() {
		return false, refuse("it is a file")
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return false, fmt.Errorf("look at the folder: %w", err)
	}
	if len(entries) > 0 {
		return false, refuse(fmt.Sprintf("it is there and holds %s", entries[0].Name()))
	}
	return true, nil
}

// fill writes the files below dir.
func fill(dir string, files []File) error {
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// moveAll moves all that is in from into to; what it cannot finish it undoes.
func moveAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var moved []string
	for _, e := range entries {
		target := filepath.Join(to, e.Name())
		if _, err = os.Lstat(target); err == nil {
			err = fmt.Errorf("%s has come into the folder meanwhile", e.Name())
		} else {
			err = os.Rename(filepath.Join(from, e.Name()), target)
		}
		if err != nil {
			break
		}
		moved = append(moved, target)
	}
	if err != nil {
		for _, name := range moved {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	return err
}
