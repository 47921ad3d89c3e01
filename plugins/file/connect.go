// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
)

// Connect opens the file. Where something is sure to be published it locks the
// path at once; else a missing file is created under the lock and the path left
// to whoever writes it.
func (e *endpoint) Connect(ctx context.Context, resume []byte) (pluginapi.Conn, error) {
	doing := "open " + e.settings.Path + " for endpoint " + e.name
	path, err := segment.Resolve(e.settings.Path)
	if err != nil {
		return nil, unresolved(doing, e.settings.Path, err)
	}
	c := &conn{path: path, groups: path + groupsSuffix, log: e.log, places: newPlaces(resume, e.log)}
	if e.settings.Groups != "" {
		if c.groups, err = filepath.Abs(e.settings.Groups); err != nil {
			return nil, faultOf(doing, err)
		}
	}
	c.output = newOutput(e, path, c.written)
	if err := e.open(ctx, c); err != nil {
		_, _ = c.Close(context.WithoutCancel(ctx)) // nothing was written that could be lost
		f := faultOf(doing, err)
		if f.Code == core.FaultConflict && len(f.Diagnostics) > 0 && !says(e.usage) {
			f.Diagnostics[0].Fix = readsOnly
		}
		return nil, f
	}
	return c, nil
}

// unresolved is the fault of a path whose folder is not there, or cannot be looked
// into. What a shell or a library would make a path of is not made here.
func unresolved(doing, path string, err error) *core.Fault {
	f := faultOf(doing, err)
	if !errors.Is(err, fs.ErrNotExist) || len(f.Diagnostics) == 0 {
		return f
	}
	switch {
	case strings.Contains(path, "://"):
		f.Diagnostics[0].Fix = "give a path, not a URL"
	case strings.HasPrefix(path, "~"), strings.Contains(path, "$"):
		f.Diagnostics[0].Fix = "write the path out: neither ~ nor $NAME is replaced in it; service files know ${env:NAME}"
	}
	return f
}

// open opens what the endpoint is used for.
func (e *endpoint) open(ctx context.Context, c *conn) error {
	var err error
	if publishes(e.usage) {
		err = c.output.open(ctx)
	} else {
		err = e.ensure(ctx, c.path)
	}
	if err == nil && len(e.usage.Registrations) > 0 {
		_, err = c.read()
	}
	return err
}

// readsOnly is what to do where the path is locked and the service has nothing to
// say of its own.
const readsOnly = "dead letters and copies of retries are written too: send them to another path with DeadLetterTo and RetryTo; with a group retries are no copies"

// says reports whether a service publishes more than what comes of failures.
func says(u pluginapi.Usage) bool {
	return slices.ContainsFunc(u.Destinations, func(t pluginapi.Target) bool {
		return t.Purpose != pluginapi.PurposeRetry && t.Purpose != pluginapi.PurposeDeadLetter
	})
}

// groupsSuffix is what the folder of the groups' positions has behind the path.
const groupsSuffix = ".groups"

// ensure sees to it that there is a file to read, which may be without records.
func (e *endpoint) ensure(ctx context.Context, path string) error {
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for {
		there, err := e.there(path)
		if there || err != nil {
			return err
		}
		o := writerOptions(e, nil)
		o.EndMark = false
		w, err := writer.Open(ctx, path, o)
		if err == nil {
			return w.Close(ctx)
		}
		if !is[*segment.LockedError](err) {
			return err
		}
		select {
		case <-pause.C: // it is there in a moment, or the path is free
		case <-ctx.Done():
			return err
		}
	}
}

// there reports whether the file can be read as it is.
func (e *endpoint) there(path string) (bool, error) {
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return false, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	case err == nil:
		return fi.Size() >= format.HeaderSize || e.settings.ExistingOnly, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case e.settings.ExistingOnly:
		return false, missing(path)
	}
	return false, nil
}

// missing is the fault of a file that is not there and may not be created.
func missing(path string) *core.Fault {
	return &core.Fault{
		Code:    core.FaultNotFound,
		Message: "open " + path,
		Diagnostics: []core.Diagnostic{{
			Path: "existing_only", Message: "is set, and " + path + " does not exist; it is not created",
			Fix: "start what writes the file first, or leave existing_only out",
		}},
	}
}
