// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/internal/handshake"
)

// nameLimit keeps file names of plugins far below every file system's limit.
const nameLimit = 64

// validName says that a transport's name can stand in a file name.
func validName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= nameLimit &&
		strings.Trim(name, letters+"-_") == "" && strings.ContainsAny(name[:1], letters)
}

const (
	originPath   = "PATH"
	reasonAbsent = "there is no such file"
)

// Place is one file that was looked at.
type Place struct {
	Origin string // why it was looked at
	Path   string // "" = the origin names no folder
	Reason string // why it is not the plugin
}

// LocateError says that no plugin of that name was found.
type LocateError struct {
	Name      string
	Places    []Place  // in the order looked at
	Installed []string // the transports that are there instead
}

// Error names every place looked at, and the fix.
func (e *LocateError) Error() string {
	return fmt.Sprintf("locate plugin %s: %s; %s", e.Name, e.looked(), e.Fix())
}

// looked names the places; folders of one origin with one reason stand together.
// Those of PATH that have no such file are many and tell nothing: they are
// counted.
func (e *LocateError) looked() string {
	var groups []string
	absent := 0
	for i := range e.Places {
		if e.Places[i].counted() {
			absent++
		}
	}
	for i := 0; i < len(e.Places); {
		p := e.Places[i]
		if p.counted() {
			if absent > 0 {
				groups = append(groups, fmt.Sprintf("%s (%s): %s", p.Origin, folders(absent), p.Reason))
			}
			absent = 0
			i++
			continue
		}
		var named []string
		for ; i < len(e.Places) && e.Places[i].Origin == p.Origin && e.Places[i].Reason == p.Reason; i++ {
			if e.Places[i].Path != "" {
				named = append(named, filepath.Dir(e.Places[i].Path))
			}
		}
		where := p.Origin
		if len(named) > 0 {
			where += " (" + strings.Join(named, ", ") + ")"
		}
		groups = append(groups, where+": "+p.Reason)
	}
	return strings.Join(groups, "; ")
}

// counted reports whether a place is not worth its name.
func (p *Place) counted() bool { return p.Origin == originPath && p.Reason == reasonAbsent }

// folders says how many there are.
func folders(n int) string {
	if n == 1 {
		return "1 folder"
	}
	return fmt.Sprintf("%d folders", n)
}

// Fix says what to do.
func (e *LocateError) Fix() string {
	file := handshake.FilePrefix + e.Name
	get := fmt.Sprintf("go install <its module>/%s@latest", file)
	if slices.Contains(strings.Fields(ownTransports), e.Name) {
		get = fmt.Sprintf("go install %s/plugins/%s/%s@latest", ownModule, e.Name, file)
	}
	fix := fmt.Sprintf("put the file %s into one of these folders, or name its folder in %s or its path in the endpoint; to get it: %s",
		file, handshake.EnvPluginDir, get)
	if len(e.Installed) > 0 {
		fix = fmt.Sprintf("use one that is installed (%s), or %s", strings.Join(e.Installed, ", "), fix)
	}
	return fix
}

// The transports whose plugins are part of the module itself.
const (
	ownModule     = "github.com/longshore-go/longshore"
	ownTransports = "file mqtt pipe pulsar zmq"
)

// Folder is one place of the search for plugins.
type Folder struct {
	Origin string // why it is searched
	Path   string // "" = the origin names no folder
	Reason string // why it does not
}

// Locate returns the absolute path of the plugin of transport name: path where
// it is not "", else the first usable file of the right name in
// LONGSHORE_PLUGIN_DIR, beside the executable, in
// $XDG_DATA_HOME/longshore/plugins, and on PATH. It executes nothing. Its error
// is a *StartError, which wraps a *LocateError where the search found nothing.
func Locate(name, path string) (string, error) {
	if !validName(name) {
		return "", &StartError{
			Name: name, Stage: StageLocate,
			Reason: fmt.Sprintf("%q cannot be the name of a transport", name),
			Fix:    "use lower-case letters, digits, - and _",
		}
	}
	file := handshake.FilePrefix + name
	if path != "" {
		return explicit(name, file, path)
	}
	failed := &LocateError{Name: name}
	for _, f := range Folders() {
		if f.Path == "" {
			failed.Places = append(failed.Places, Place{Origin: f.Origin, Reason: f.Reason})
			continue
		}
		candidate := filepath.Join(f.Path, file)
		bad := examine(candidate)
		if bad == nil {
			return candidate, nil
		}
		failed.Places = append(failed.Places, Place{Origin: f.Origin, Path: candidate, Reason: bad.reason})
	}
	failed.Installed = names()
	return "", &StartError{Name: name, Stage: StageLocate, Reason: "not found: " + failed.looked(), Fix: failed.Fix(), Err: failed}
}

// names returns the transports that a search finds, so many as can be read.
func names() []string {
	const most = 10
	var all []string
	for _, i := range List() {
		if !i.Hidden && len(all) < most {
			all = append(all, i.Name)
		}
	}
	slices.Sort(all)
	return all
}

// explicit checks a path that the user gave.
func explicit(name, file, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &StartError{
			Name: name, Path: path, Stage: StageLocate, Err: err,
			Reason: "the working directory is not known", Fix: "give an absolute path",
		}
	}
	if filepath.Base(abs) != file {
		return "", &StartError{
			Name: name, Path: abs, Stage: StageLocate,
			Reason: fmt.Sprintf("the file is not named %s, and no other file is executed", file),
			Fix:    "rename it, or make a symbolic link of that name",
		}
	}
	return abs, nil
}

// Folders returns the places of a search, in order.
func Folders() []Folder {
	var list []Folder
	add := func(origin, path, missing string) {
		switch {
		case path == "":
			list = append(list, Folder{Origin: origin, Reason: missing})
		case !filepath.IsAbs(path):
			list = append(list, Folder{Origin: origin, Reason: "is not an absolute path"})
		default:
			list = append(list, Folder{Origin: origin, Path: path})
		}
	}
	add(handshake.EnvPluginDir, os.Getenv(handshake.EnvPluginDir), "is not set")

	executable, err := os.Executable()
	if err != nil {
		add("beside the executable", "", "its path is not known")
	} else {
		add("beside the executable", filepath.Dir(executable), "")
	}

	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		if home := os.Getenv("HOME"); home != "" {
			data = filepath.Join(home, ".local", "share")
		}
	}
	if data != "" {
		data = filepath.Join(data, "longshore", "plugins")
	}
	add("XDG_DATA_HOME", data, "neither it nor HOME is set")

	// An empty or relative entry would mean the working directory, which
	// anybody may have filled.
	var path []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !slices.Contains(path, filepath.Clean(dir)) {
			path = append(path, filepath.Clean(dir))
			add(originPath, filepath.Clean(dir), "")
		}
	}
	if len(path) == 0 {
		add(originPath, "", "names no folder")
	}
	return list
}

// Installed is a plugin that is found by its name.
type Installed struct {
	Name   string
	Path   string
	Origin string
	Hidden bool // another file of this name is found first
}

// List returns the plugins in all places of a search, in its order. It executes
// nothing.
func List() []Installed {
	var found []Installed
	seen := map[string]bool{}  // names
	again := map[string]bool{} // folders that two places name
	for _, f := range Folders() {
		if f.Path == "" || again[f.Path] {
			continue
		}
		again[f.Path] = true
		entries, err := os.ReadDir(f.Path)
		if err != nil {
			continue // a folder that is not there holds no plugin
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), handshake.FilePrefix)
			path := filepath.Join(f.Path, e.Name())
			if !ok || !validName(name) || examine(path) != nil {
				continue
			}
			found = append(found, Installed{Name: name, Path: path, Origin: f.Origin, Hidden: seen[name]})
			seen[name] = true
		}
	}
	return found
}

// missing says why a path leads to no file.
func missing(path string, err error) *fault {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, e := os.Readlink(path); e == nil {
			return &fault{reason: fmt.Sprintf("it is a link to %s, which is not there", target), fix: "install it again"}
		}
		return &fault{reason: reasonAbsent, fix: "check the path, or install the plugin"}
	case errors.Is(err, fs.ErrPermission):
		return &fault{reason: "a folder on the way to it may not be entered", fix: "change the folder's permissions"}
	default:
		return &fault{reason: cause(err), fix: "check the path"}
	}
}

// cause is an error of the system without the path, which stands in the error
// around it.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
