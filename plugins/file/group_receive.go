// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/position"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// movePause is how long the position may stay behind where there is nothing for
// the group: files in between may be removed.
const movePause = time.Second

// Receive hands out what came back, then what is new. A replay has caught up,
// and a stream with an end mark has ended, when nothing of it is with the host
// any more: what is handed back until then comes in this run.
func (g *group) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	if g.failed != nil {
		return pluginapi.Batch{}, g.failed
	}
	for {
		b, err := g.again(ctx, room)
		if err == nil && len(b.Deliveries)+len(b.Reports) == 0 {
			if g.read.Load() && g.tracker.Idle() && (g.end || !g.caught) {
				return g.done()
			}
			err = g.more(ctx, room, &b)
		}
		b.Reports = append(b.Reports, g.told()...)
		switch {
		case ctx.Err() != nil:
			return b, context.Cause(ctx)
		case err != nil:
			return b, faultOf("read "+g.name, err)
		case len(b.Deliveries)+len(b.Reports) > 0:
			return b, nil
		}
	}
}

// done says that all there is was handed out and settled.
func (g *group) done() (pluginapi.Batch, error) {
	if g.end {
		return pluginapi.Batch{}, io.EOF
	}
	g.caught = true
	return pluginapi.Batch{CaughtUp: true}, nil
}

// told takes the reports of what happened meanwhile.
func (g *group) told() []pluginapi.Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	rs := g.reports
	g.reports = nil
	return rs
}

// again hands out what came back, each record from its place.
func (g *group) again(ctx context.Context, room pluginapi.Room) (b pluginapi.Batch, err error) {
	most, bytes := min(room.Messages, maxBatch), min(room.Bytes, maxBatchBytes)
	g.records, g.entries = g.records[:0], g.entries[:0]
	for len(g.records) < most && bytes > 0 && len(b.Reports) < maxBatch {
		e := g.tracker.Waiting()
		if e == nil {
			break
		}
		r, rerr := g.cursor.Read(ctx, reader.Place(e.Place))
		if rerr != nil || !reads(g.name, r.Key) {
			report, gone := lost(e.Place, &r, rerr)
			if !gone {
				err = rerr
				break
			}
			b.Reports = append(b.Reports, report)
			g.tracker.Drop()
			continue
		}
		bytes -= int64(len(r.Payload))
		g.records = append(g.records, r)
		g.entries = append(g.entries, g.tracker.Again())
	}
	if len(g.records) > 0 {
		g.saved(g.tracker.Save())
		b.Deliveries, _, _ = g.batcher.deliveries(g.records)
		g.handed(b.Deliveries)
		clear(g.records)
	}
	return b, err
}

// lost reports a record that was to come again and is not there any more, or
// not whole. It reports false where reading failed for another reason.
func lost(at position.Place, r *reader.Record, err error) (pluginapi.Report, bool) {
	if p, ok := errors.AsType[*reader.Problem](err); ok {
		return reportOf(p), true
	}
	switch {
	case is[*reader.PositionError](err):
		return pluginapi.Report{Fault: faultOf("hand out again", err), Position: at.String()}, true
	case err == nil:
		return pluginapi.Report{
			Fault:    fault.Refusal(core.FaultNotFound, "a record that was to come again is not there any more: one of key %s stands in its place", r.Key),
			Position: at.String(),
		}, true
	}
	return pluginapi.Report{}, false
}

// more waits for new records, problems, the end, or for something to hand out
// again.
func (g *group) more(ctx context.Context, room pluginapi.Room, b *pluginapi.Batch) error {
	if room.Messages <= 0 || room.Bytes <= 0 || g.caught {
		select {
		case <-g.wake:
		case <-ctx.Done():
		}
		return nil
	}
	got, err := g.next(ctx, room)
	switch {
	case len(got.Records) > 0:
		g.deliver(got.Records)
		g.saved(g.tracker.Save())
		b.Deliveries, b.Memory = g.batcher.read(g.cursor, got.Records)
		g.handed(b.Deliveries)
	case !g.fresh:
		g.tracker.Moved(position.Place(g.cursor.Place()))
		g.saved(g.tracker.Save())
	}
	for _, p := range got.Problems {
		b.Reports = append(b.Reports, reportOf(p))
	}
	if got.CaughtUp || got.Ended {
		g.end = got.Ended
		g.read.Store(true)
	}
	return err
}

// next waits for the reader, unless Receive is to look again.
func (g *group) next(ctx context.Context, room pluginapi.Room) (reader.Batch, error) {
	waiting, cancel := context.WithTimeout(ctx, movePause)
	defer cancel()
	g.mu.Lock()
	g.recall = cancel
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.recall = nil
		g.mu.Unlock()
	}()
	select {
	case <-g.wake:
		return reader.Batch{}, nil
	default:
	}
	got, err := g.cursor.Next(waiting, g.batcher.room(room.Messages), min(room.Bytes, maxBatchBytes))
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return got, nil // called back by signal, or to note how far it is
	}
	return got, err
}

// deliver notes records that are handed out for the first time.
func (g *group) deliver(records []reader.Record) {
	if g.fresh {
		g.fresh = false
		g.saved(g.tracker.Begin(position.Place(records[0].At)))
	}
	g.marks = g.marks[:0]
	for i := range records {
		r := &records[i]
		g.marks = append(g.marks, position.Mark{Place: position.Place(r.At), Sequence: r.Sequence, Time: r.Time})
	}
	g.entries = g.tracker.Deliver(g.entries[:0], g.marks, position.Place(g.cursor.Place()))
	g.read.Store(false)
	g.end = false
	if g.tracker.Full() && !g.full {
		g.full = true
		g.mu.Lock()
		g.reports = append(g.reports, pluginapi.Report{
			Fault: fault.Refusal(core.FaultExhausted, "group %s has %d records that are not settled, more than its position holds; what is settled behind them comes again at the next start",
				g.settings.Group, position.MaxUnsettled),
			Position: g.tracker.Path(),
		})
		g.mu.Unlock()
	}
}

// handed completes the deliveries of entries, once the position says that they
// are handed out.
func (g *group) handed(ds []pluginapi.Delivery) {
	for i := range ds {
		d := &ds[i]
		d.Handle, d.Identity = g.entries[i], d.Position
		d.Attempt = g.attempt(g.entries[i].Attempt, d.Message.Headers)
	}
	g.caught = false
}

// attempt is the number of a delivery. A record that is a copy itself, of a run
// without a group, counts the deliveries that its header tells of, but is at its
// cap at most when it is handed out for the first time: a dead letter with a
// count of its own is handled once, as without a group.
func (g *group) attempt(handed uint32, hs core.Headers) uint32 {
	copies, _ := hs.Count()
	if g.attempts > 0 {
		copies = min(copies, uint64(g.attempts)-1)
	}
	return uint32(min(uint64(handed)+min(copies, math.MaxUint32), math.MaxUint32))
}
