// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// output is the writing side of a connection. Its writer is opened at Connect or
// by the first publish, and holds the lock of the path from then on.
type output struct {
	path    string
	options writer.Options

	turn   chan struct{} // held by whoever uses what follows
	writer *writer.Writer
	closed bool

	entries []writer.Entry // of the last batch, used again
}

// newOutput returns an output that has no writer yet. written is called behind
// every batch.
func newOutput(e *endpoint, path string, written func()) *output {
	return &output{path: path, options: writerOptions(e, written), turn: make(chan struct{}, 1)}
}

// writerOptions are the settings as the writer takes them.
func writerOptions(e *endpoint, written func()) writer.Options {
	s := &e.settings
	o := writer.Options{
		Existing: s.ExistingOnly, EndMark: s.EndWithEOS,
		Interval: uint32(s.BeaconInterval), MaxBytes: s.MaxBytes,
		Sync: writer.SyncNone, SyncEvery: time.Duration(s.FsyncInterval),
		RotateBytes: s.Rotate.Bytes, RotateAge: time.Duration(s.Rotate.Age), Keep: s.Rotate.Keep,
		RefuseTorn: s.TornTail == settings.TornTailRefuse,
		Owner:      "endpoint " + e.name, Now: e.transport.now, Logger: e.log, Written: written,
	}
	switch s.Fsync {
	case settings.FsyncInterval:
		o.Sync = writer.SyncInterval
	case settings.FsyncEach:
		o.Sync = writer.SyncEach
	}
	return o
}

// take waits for the turn.
func (o *output) take(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *output) give() { <-o.turn }

// open opens the writer, if that is not done; the turn is held.
func (o *output) open(ctx context.Context) error {
	if o.closed {
		return fault.Closed("publish")
	}
	if o.writer != nil {
		return nil
	}
	w, err := openNamed(ctx, o.path, o.options)
	if errors.Is(err, fs.ErrNotExist) && o.options.Existing {
		return missing(o.path)
	}
	if err != nil {
		return faultOf("open "+o.path+" to write for "+o.options.Owner, err)
	}
	o.writer = w
	return nil
}

// A path that was locked just now is looked at again, every lockPause and at most
// lockLooks times, until it says who has it.
const (
	lockPause = 5 * time.Millisecond
	lockLooks = 40
)

// openNamed opens a writer. Where the path is locked the error says by whom, if
// that can be known.
func openNamed(ctx context.Context, path string, options writer.Options) (*writer.Writer, error) {
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for look := 0; ; look++ {
		w, err := writer.Open(ctx, path, options)
		if held, locked := errors.AsType[*segment.LockedError](err); !locked || held.Owner != "" || look == lockLooks {
			return w, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// close writes what was accepted, syncs, writes the end mark where that is
// wanted, and gives the lock back.
func (o *output) close(ctx context.Context, log *slog.Logger) error {
	if err := o.take(ctx); err != nil {
		log.Error("the file is left as it is: a write to it does not end", "path", o.path)
		return err
	}
	defer o.give()
	o.closed = true
	if o.writer == nil {
		return nil
	}
	w := o.writer
	o.writer = nil
	return w.Close(ctx)
}
