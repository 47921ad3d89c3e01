// SPDX-License-Identifier: Apache-2.0

package card

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check says why no card can be written to path, before anything was run for
// it. It leaves nothing behind.
func Check(path string) error {
	if ext := filepath.Ext(path); ext != ".json" && ext != ".md" {
		return fmt.Errorf("write card %s: its name says no form; end it with .json or .md", path)
	}
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return fmt.Errorf("write card %s: something that is no file is there; name another", path)
	}
	dir := filepath.Dir(path)
	i, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write card %s: there is no folder %s; make it, or name another", path, dir)
	case err != nil:
		return fmt.Errorf("write card %s: %w; name another folder", path, err)
	case !i.IsDir():
		return fmt.Errorf("write card %s: %s is no folder; name another", path, dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("write card %s: folder %s cannot be written to: %w; name another", path, dir, err)
	}
	return nil
}

// Write writes the card to path, as JSON or Markdown by its ending. Whoever
// reads path sees the whole card or what was there before.
func (c *Card) Write(path string) error {
	if err := Check(path); err != nil {
		return err
	}
	if filepath.Ext(path) == ".md" {
		return put(path, c.Markdown())
	}
	text, err := c.JSON()
	if err != nil {
		return err
	}
	return put(path, text)
}

// put puts a file of its own in the place of path.
func put(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write card: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // closed already, but where writing failed
			_ = os.Remove(f.Name()) // the first error tells more
			err = fmt.Errorf("write card %s: %w", path, err)
		}
	}()
	if _, err = f.Write(text); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil { // CreateTemp lets nobody else read it
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
