// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/position"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// group is a key or a pattern that is read with a group. One goroutine calls
// Receive and Seek, another one Settle and Release.
type group struct {
	name     string
	attempts uint32 // the cap of the registration, 0 = none
	settings settings.Subscription
	log      *slog.Logger
	tracker  *position.Tracker
	cursor   *reader.Cursor

	// Of the goroutine that receives.
	batcher batcher
	records []reader.Record // read again
	marks   []position.Mark
	entries []*position.Entry
	caught  bool        // told, and nothing handed out since
	end     bool        // an end mark stands where the cursor is
	fresh   bool        // the position is begun with the first record
	full    bool        // told that the position cannot hold more
	failed  *core.Fault // why the subscription has ended

	verdicts []position.Verdict // of the goroutine that settles
	settled  []int              // their places among the verdicts given

	read    atomic.Bool   // all there is, for now
	wake    chan struct{} // something to hand out again, or to tell
	mu      sync.Mutex
	recall  context.CancelFunc // of a wait for new records, nil = none
	reports []pluginapi.Report
	broken  bool // the position cannot be written, which was told
}

// Profiles say that deliveries are settled one by one and counted.
func (g *group) Profiles() []core.Capabilities {
	return []core.Capabilities{capabilitiesOf(g.name, &g.settings)}
}

// signal lets Receive look again.
func (g *group) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
	g.mu.Lock()
	if g.recall != nil {
		g.recall()
	}
	g.mu.Unlock()
}

// Settle notes what is settled, in memory and on disk, and queues what is to be
// handed out again. An ack that cannot be written is accepted: it is written as
// soon as that works, and what is acked until then comes again after a crash.
func (g *group) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	out := make([]pluginapi.Result, len(vs))
	g.verdicts, g.settled = g.verdicts[:0], g.settled[:0]
	again := false
	for i := range vs {
		e, ok := vs[i].Handle.(*position.Entry)
		requeue := vs[i].Kind == core.VerdictRequeue
		if !ok || !requeue && vs[i].Kind != core.VerdictAck {
			out[i].Status = pluginapi.ResultUnsupported
			continue
		}
		again = again || requeue
		g.verdicts = append(g.verdicts, position.Verdict{Entry: e, Requeue: requeue})
		g.settled = append(g.settled, i)
	}
	g.saved(g.tracker.Settle(g.verdicts))
	for k := range g.verdicts {
		out[g.settled[k]].Status = pluginapi.ResultDone
		if g.verdicts[k].Outcome == position.Stale {
			out[g.settled[k]].Status = pluginapi.ResultStale
		}
	}
	clear(g.verdicts)
	if again || g.read.Load() {
		g.signal()
	}
	return out
}

// Release leaves deliveries where they are: they come again when the group reads
// anew.
func (g *group) Release(handles []any) {
	for _, h := range handles {
		if e, ok := h.(*position.Entry); ok {
			g.tracker.Release(e)
		}
	}
	if g.read.Load() {
		g.signal()
	}
}

// saved takes note of whether the position could be written. That it could not
// is told once, until it can again; that it was removed is told each time.
func (g *group) saved(err error) {
	renewed := is[*position.RenewedError](err)
	g.mu.Lock()
	tell := renewed || err != nil && !g.broken
	g.broken = err != nil && !renewed
	if tell {
		f := positionFault("save the position of group "+g.settings.Group, g.tracker.Path(), err)
		if g.broken {
			f.Message += "; what is settled until that works comes again after a crash"
		}
		g.reports = append(g.reports, pluginapi.Report{Fault: f, Position: g.tracker.Path()})
	}
	g.mu.Unlock()
	if tell {
		g.signal()
	}
}

// Seek moves the group. What is unsettled is given up.
func (g *group) Seek(ctx context.Context, to pluginapi.Position) error {
	if err := seek(ctx, g.cursor, g.name, to); err != nil {
		f := faultOf("seek", err)
		if is[*reader.PositionError](err) && !g.settings.Replay {
			g.failed = f
		}
		return f
	}
	g.read.Store(false)
	g.caught, g.end, g.fresh, g.full = false, false, false, false
	g.saved(g.tracker.Begin(position.Place(g.cursor.Place())))
	return nil
}

// Finish takes back the counts of what no handler has begun. A delivery whose
// delayed requeue is held has had its handler, and counts.
func (g *group) Finish(_ context.Context, held []any) {
	var begun []*position.Entry
	for _, h := range held {
		if e, ok := h.(*position.Entry); ok {
			begun = append(begun, e)
		}
	}
	if err := g.tracker.TakeBack(begun...); err != nil {
		g.log.Warn("save the position of a group", "group", g.settings.Group, "error", err)
	}
}

// Close saves the position and lets others read with the group.
func (g *group) Close(context.Context) error {
	if !g.fresh {
		g.tracker.Moved(position.Place(g.cursor.Place()))
	}
	g.cursor.Close()
	if err := g.tracker.Close(); err != nil {
		return faultOf("close group "+g.settings.Group, err)
	}
	return nil
}
