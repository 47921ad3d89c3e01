// SPDX-License-Identifier: Apache-2.0

// Package segment knows which files make up the stream at one path: the active
// file, which is written, and the rotated ones before it. It opens them with a
// look at their header, and it locks the path for its one writer.
//
// The active file is the path itself, dir/orders.ss. Rotated files stand beside
// it with a number between name and extension, dir/orders.000001.ss, counting
// up. A file is known by the time of creation in its header, which rises
// strictly from one file of a path to the next.
package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// digits is how many digits the number of a rotated file has at least, so that
// names sort as numbers do.
const digits = 6

// MaxNumber is the highest number that a rotated file can have.
const MaxNumber = 1<<63 - 1

// Segment names one file of a path.
type Segment struct {
	Number uint64 // from 1; the active file's is one above the highest rotated one's
	Path   string
	Active bool
}

// Resolve returns the absolute path of the file that path leads to, symbolic
// links followed, so that one file has one name. The file itself may be
// missing, its folder may not.
func Resolve(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(full)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	if fi, lerr := os.Lstat(full); lerr == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("resolve %s: a symbolic link to nothing: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(full))
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return filepath.Join(dir, filepath.Base(full)), nil
}

// Rotated returns the path of a path's rotated file with a number.
func Rotated(path string, number uint64) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%0*d%s", strings.TrimSuffix(path, ext), digits, number, ext)
}

// List returns the files of a path that there are, in ascending order. The
// active one is last, if it exists. A folder that is missing is an error.
func List(path string) ([]Segment, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", path, err)
	}
	var list []Segment
	active := false
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if e.Name() == filepath.Base(path) {
			active = true
			continue
		}
		if n, ok := number(filepath.Base(path), e.Name()); ok {
			list = append(list, Segment{Number: n, Path: filepath.Join(filepath.Dir(path), e.Name())})
		}
	}
	slices.SortFunc(list, func(a, b Segment) int { return cmp.Compare(a.Number, b.Number) })
	if active {
		next := uint64(1)
		if len(list) > 0 {
			next = list[len(list)-1].Number + 1
		}
		list = append(list, Segment{Number: next, Path: path, Active: true})
	}
	return list, nil
}

// number takes the number out of the name of a rotated file of base. A number
// has one spelling.
func number(base, name string) (uint64, bool) {
	ext := filepath.Ext(base)
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(base, ext)+".")
	if !ok {
		return 0, false
	}
	if rest, ok = strings.CutSuffix(rest, ext); !ok {
		return 0, false
	}
	if len(rest) < digits || len(rest) > digits && rest[0] == '0' || strings.TrimLeft(rest, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(rest, 10, 63)
	return n, err == nil && n > 0
}
