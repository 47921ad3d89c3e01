// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/position"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// The wait for a position that another process holds. A plugin whose host was
// killed lets go of it within a second.
const (
	heldLimit = 2 * time.Second
	heldPause = 20 * time.Millisecond
)

// subscribeGroup opens a key or a pattern at the position of a group.
func (c *conn) subscribeGroup(ctx context.Context, from *reader.Reader, r *pluginapi.Registration, o settings.Subscription) (pluginapi.Subscription, error) {
	doing := fmt.Sprintf("subscribe to %s in the group %s", r.Name, o.Group)
	t, err := c.openPosition(ctx, o.Group, r.Name)
	if err != nil {
		return nil, positionFault(doing, c.groups, err)
	}
	g := &group{name: r.Name, attempts: r.Attempts, settings: o, log: c.log, tracker: t, wake: make(chan struct{}, 1)}
	if err := g.begin(ctx, from); err != nil {
		if g.cursor != nil {
			g.cursor.Close()
		}
		_ = t.Close() // it is as it was, and the first error says why
		return nil, groupFault(doing, err)
	}
	return pluginapi.Held(g, 0), nil
}

// openPosition opens a position, which a former reader may be about to close.
func (c *conn) openPosition(ctx context.Context, group, name string) (*position.Tracker, error) {
	limited, cancel := context.WithTimeout(ctx, heldLimit)
	defer cancel()
	pause := time.NewTimer(heldPause)
	defer pause.Stop()
	for {
		t, err := position.Open(c.groups, group, name, c.output.options.Owner)
		if !is[*position.LockedError](err) {
			return t, err
		}
		select {
		case <-pause.C:
			pause.Reset(heldPause)
		case <-limited.Done():
			return nil, err
		}
	}
}

// begin puts the cursor where the group stands, or where a new one is to begin.
func (g *group) begin(ctx context.Context, from *reader.Reader) (err error) {
	match := reader.Pattern(g.name)
	if g.tracker.Fresh() {
		g.log.Info("the group is new", "group", g.settings.Group, "subscription", g.name,
			"begins_at", cmp.Or(g.settings.Start, settings.Beginning()).String(), "position", g.tracker.Path())
		if g.cursor, err = from.Cursor(match, startOf(g.settings.Start, reader.Beginning), g.settings.Replay); err != nil {
			return err
		}
		// A time holds until there is a record behind it.
		if g.fresh = g.settings.Start.Kind() == settings.StartTime; g.fresh {
			return nil
		}
		if err := g.tracker.Begin(position.Place(g.cursor.Place())); err != nil {
			return positionFault("begin the group "+g.settings.Group, g.tracker.Path(), err)
		}
		return nil
	}
	next := g.tracker.Next()
	g.cursor, err = from.Cursor(match, reader.Start{Kind: reader.At, At: reader.Place(next)}, g.settings.Replay)
	if is[*reader.Problem](err) || is[*reader.PositionError](err) {
		return &misplaced{path: g.tracker.Path(), next: next, cause: err}
	}
	if err != nil {
		return err
	}
	return g.verify(ctx, next)
}

// verify looks whether the file is the one that was read: a copy of an older
// state, or one that was written anew, has other records there.
func (g *group) verify(ctx context.Context, next position.Place) error {
	last, ok := g.tracker.Last()
	if !ok {
		return nil
	}
	r, err := g.cursor.Read(ctx, reader.Place(last.Place))
	p, problem := errors.AsType[*reader.Problem](err)
	switch {
	case problem && p.Kind == reader.Gone && last.Created != next.Created, problem && p.Kind == reader.Damage:
		return nil // what is behind it is what counts
	case problem, is[*reader.PositionError](err):
		return &misplaced{path: g.tracker.Path(), next: next, cause: err}
	case err != nil:
		return err
	case r.Sequence != last.Sequence || r.Time != last.Time:
		return &misplaced{path: g.tracker.Path(), next: next, cause: fmt.Errorf("the last record that was read, sequence %d at %v, is another one now", last.Sequence, last.Place)}
	}
	return nil
}

// misplaced says that a position does not belong to what is there.
type misplaced struct {
	path  string
	next  position.Place
	cause error
}

func (e *misplaced) Error() string {
	return fmt.Sprintf("the group's position, %v, is not in what there is: %v", e.next, e.cause)
}

func (e *misplaced) Unwrap() error { return e.cause }

// groupFault is faultOf for what concerns positions.
func groupFault(doing string, err error) *core.Fault {
	f := &core.Fault{Code: core.FaultConflict, Message: doing + ": " + err.Error()}
	var fix string
	var lost *misplaced
	var corrupt *position.CorruptError
	switch {
	case errors.As(err, &lost):
		fix = "put the files back that were read, or remove " + lost.path + " to let the group begin anew"
	case is[*position.LockedError](err):
		fix = "end the other reader, or use another group: it has a position of its own"
	case errors.As(err, &corrupt):
		f.Code, fix = core.FaultInvalid, corrupt.Fix
	case is[*position.NameError](err):
		f.Code, fix = core.FaultInvalid, groupFix
	default:
		return faultOf(doing, err)
	}
	f.Diagnostics = []core.Diagnostic{{Path: "group", Fix: fix}}
	return f
}

// positionFault is groupFault for what goes wrong with the files of positions, at
// a path.
func positionFault(doing, path string, err error) *core.Fault {
	f := groupFault(doing, err)
	if len(f.Diagnostics) > 0 && f.Diagnostics[0].Path == "group" || is[*position.RenewedError](err) {
		return f
	}
	if errors.Is(err, unix.ENOTDIR) {
		f.Code = core.FaultInvalid
	}
	f.Message = doing
	f.Diagnostics = []core.Diagnostic{{
		Path: "settings.groups", Message: err.Error(),
		Fix: "let this user make folders and files at " + path + ", with room on the disk, or set groups to another folder",
	}}
	return f
}
