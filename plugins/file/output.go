// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
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
		return closedFault("publish")
	}
	if o.writer != nil {
		return nil
	}
	w, err := writer.Open(ctx, o.path, o.options)
	if errors.Is(err, fs.ErrNotExist) && o.options.Existing {
		return missing(o.path)
	}
	if err != nil {
		return faultOf("open "+o.path+" to write for "+o.options.Owner, err)
	}
	o.writer = w
	return nil
}

// publish appends messages in order.
func (o *output) publish(ctx context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	if err := o.take(ctx); err != nil {
		refuseAll(len(msgs), faultOf("publish", err), done)
		return
	}
	defer o.give()
	if err := o.open(ctx); err != nil {
		refuseAll(len(msgs), faultOf("publish", err), done)
		return
	}
	o.entries = o.entries[:0]
	var at []int // of the entries among the messages, where some were refused
	for i := range msgs {
		if f := refuses(&msgs[i]); f != nil {
			if at == nil {
				at = make([]int, 0, len(msgs))
				for k := range i {
					at = append(at, k)
				}
			}
			done(i, pluginapi.Refused(f))
			continue
		}
		if at != nil {
			at = append(at, i)
		}
		o.entries = append(o.entries, entryOf(&msgs[i]))
	}
	o.writer.Append(o.entries, func(k int, sequence uint64, err error) {
		if at != nil {
			k = at[k]
		}
		done(k, receiptOf(sequence, err))
	})
	clear(o.entries)
}

func refuseAll(n int, f *core.Fault, done func(int, pluginapi.Receipt)) {
	for i := range n {
		done(i, pluginapi.Refused(f))
	}
}

// refuses says why a message cannot be written.
func refuses(m *pluginapi.Outgoing) *core.Fault {
	name := m.Message.Name
	if message, fix := badKey(name); message != "" {
		return keyFault("publish", message, fix)
	}
	switch n := messageBytes(&m.Message); {
	case m.DeliverAfter > 0:
		return refusal(core.FaultUnsupported, "publish under %s: a stream file delivers nothing later", name)
	case len(m.Message.Headers) > MaxPublishHeaders:
		return refusal(core.FaultTooLarge, "publish under %s: %d headers, the limit is %d", name, len(m.Message.Headers), MaxPublishHeaders)
	case n > MaxPublish:
		return refusal(core.FaultTooLarge, "publish under %s: payload and headers of %d bytes, the limit is %d", name, n, MaxPublish)
	}
	return nil
}

// entryOf is a message as it is written. What an application publishes leaves
// the number behind that this transport put onto the delivery: the reader
// numbers it anew, and a message without headers of its own stays a plain
// record. Copies and dead letters keep it, as in the reference.
func entryOf(m *pluginapi.Outgoing) writer.Entry {
	e := writer.Entry{Key: m.Message.Name, Headers: m.Message.Headers, Payload: m.Message.Payload}
	if m.Purpose == pluginapi.PurposeApplication {
		e.Headers = envelope.WithoutSequence(e.Headers)
	}
	return e
}

// receiptOf says what became of a message.
func receiptOf(sequence uint64, err error) pluginapi.Receipt {
	if err != nil {
		f := faultOf("publish", err)
		if e, ok := errors.AsType[*writer.SyncError](err); ok && e.Unknown {
			return pluginapi.Unknown(f)
		}
		if e, ok := errors.AsType[*writer.BrokenError](err); ok && e.Unknown {
			return pluginapi.Unknown(f)
		}
		if e, ok := errors.AsType[*writer.WriteError](err); ok {
			f.Transient = e.Transient
		}
		return pluginapi.Refused(f)
	}
	r := pluginapi.Confirmed()
	r.Position = []byte(settings.Sequence(sequence).String())
	return r
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
