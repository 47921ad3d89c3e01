// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/longshore-go/longshore/core"
)

func TestTypesOfErrors(t *testing.T) {
	plain, telling := errors.New("no"), &fs.PathError{Op: "open", Path: "x", Err: errors.New("no")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "*errors.errorString"},
		{fmt.Errorf("read: %w", plain), "*fmt.wrapError"},
		{telling, "*fs.PathError"},
		{fmt.Errorf("read: %w", fmt.Errorf("again: %w", telling)), "*fs.PathError"},
		{errors.Join(plain, fmt.Errorf("%w and %w", plain, telling)), "*fs.PathError"},
		{errors.Join(fmt.Errorf("read: %w", &core.Fault{}), telling), "*core.Fault"},
		{fmt.Errorf("read: %w", (*fs.PathError)(nil)), "*fs.PathError"},
	} {
		if got := typeOf(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

func TestPositionsArePrintable(t *testing.T) {
	for position, want := range map[string]string{"": "", "line 7": "line 7", "\x00\x01\xff": "0001ff", "a\nb": "610a62"} {
		if got := Printable(position); got != want {
			t.Errorf("%q: got %q, want %q", position, got, want)
		}
	}
}
