// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/internal/handshake"
)

// ArgumentError says that something that was given cannot be used. Nothing has
// been written.
type ArgumentError struct {
	Argument string // as on the command line: NAME, --dir, --module, --replace
	Reason   string
	Fix      string
}

// Error names the argument, the reason and the fix.
func (e *ArgumentError) Error() string { return e.Argument + " " + e.Reason + "; " + e.Fix }

// nameLimit is the most that a host takes for the name of a transport.
const nameLimit = 64

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	wordForm  = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)
	majorForm = regexp.MustCompile(`^v[2-9]$|^v[1-9][0-9]+$`)
	bareForm  = regexp.MustCompile(`^[A-Za-z0-9._~/+-]+$`) // of a path that go.mod needs no quotes around
	otherRune = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// check returns the target of the replace line, or an *ArgumentError.
func (m Module) check() (replace string, err error) {
	if e := checkName(m.Name); e != nil {
		return "", e
	}
	if e := m.checkPath(); e != nil {
		return "", e
	}
	if m.Replace == "" {
		return "", nil
	}
	if e := checkCheckout(m.Replace); e != nil {
		return "", e
	}
	return m.target()
}

// checkName checks that a transport can have this name.
func checkName(name string) *ArgumentError {
	refuse := func(reason string) *ArgumentError {
		return &ArgumentError{Argument: "NAME", Reason: reason, Fix: nameFix(name)}
	}
	switch {
	case strings.HasPrefix(name, handshake.FilePrefix):
		return refuse(fmt.Sprintf("is %q, and the program's name begins with %s by itself", name, handshake.FilePrefix))
	case len(name) > nameLimit:
		return refuse(fmt.Sprintf("has %d characters, and the limit is %d", len(name), nameLimit))
	case !nameForm.MatchString(name):
		return refuse(fmt.Sprintf("cannot be %q: a transport's name has lower-case letters, digits, - and _, and begins with a letter or digit", name))
	}
	return nil
}

// nameFix names what may be meant.
func nameFix(name string) string {
	near := otherRune.ReplaceAllString(strings.ToLower(name), "-")
	near = strings.Trim(strings.TrimPrefix(near, handshake.FilePrefix), "-_")
	if near == "" || len(near) > nameLimit {
		return "choose one like redis or local-queue"
	}
	return "use " + near
}

// checkPath checks that go install gives the program its name.
func (m Module) checkPath() *ArgumentError {
	words := strings.Split(m.Path, "/")
	for _, w := range words {
		if !wordForm.MatchString(w) || strings.HasSuffix(w, ".") {
			return &ArgumentError{
				Argument: "--module", Reason: fmt.Sprintf("cannot be %q: that is no module path", m.Path),
				Fix: "use one like github.com/you/" + m.Program(),
			}
		}
	}
	last := words[len(words)-1]
	if len(words) > 1 && majorForm.MatchString(last) {
		last = words[len(words)-2]
	}
	if last != m.Program() {
		return &ArgumentError{
			Argument: "--module", Reason: fmt.Sprintf("is %q, and go install names the program by its end, which has to be %s", m.Path, m.Program()),
			Fix: "use " + m.Path + "/" + m.Program(),
		}
	}
	return nil
}

// checkCheckout checks that dir holds the source of longshore.
func checkCheckout(dir string) *ArgumentError {
	refuse := func(reason string) *ArgumentError {
		return &ArgumentError{
			Argument: "--replace", Reason: fmt.Sprintf("cannot be %q: %s", dir, reason),
			Fix: "name the folder that holds the go.mod of " + Longshore,
		}
	}
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return refuse("it has no go.mod that can be read")
	}
	defer func() { _ = file.Close() }() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			if path = strings.TrimSpace(path); path != Longshore {
				return refuse("its go.mod is that of " + path)
			}
			return nil
		}
	}
	return refuse("its go.mod names no module")
}

// target returns the checkout as go.mod names it: a path that was given relative
// to the working directory is made relative to the module.
func (m Module) target() (string, error) {
	dir := filepath.Clean(m.Replace)
	if !filepath.IsAbs(dir) {
		module, err := realPath(m.Dir)
		if err != nil {
			return "", err
		}
		checkout, err := realPath(dir)
		if err != nil {
			return "", err
		}
		if dir, err = filepath.Rel(module, checkout); err != nil {
			return "", err
		}
		if dir != ".." && !strings.HasPrefix(dir, "../") {
			dir = "./" + dir
		}
	}
	if bareForm.MatchString(dir) {
		return dir, nil
	}
	return strconv.Quote(dir), nil
}

// realPath returns the absolute path of what may not be there yet, links
// resolved: .. goes by them.
func realPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if there, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(there, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
