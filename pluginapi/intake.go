// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// credit sets the window. A Receive that was given more than there is now is
// called back, and so is one without room when there is room again.
func (x *subscription) credit(window frame.Credit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.window = window
	x.ledger.Fit(window.Messages)
	x.adjust()
}

// room is what the window leaves; x.mu is held.
func (x *subscription) room() Room {
	messages, bytes := x.ledger.Outstanding()
	if uint64(messages) >= x.window.Messages || uint64(bytes) >= x.window.Bytes {
		return Room{}
	}
	return Room{
		Messages: int(min(x.window.Messages-uint64(messages), maxRoom)),
		Bytes:    int64(min(x.window.Bytes-uint64(bytes), maxRoomBytes)),
	}
}

// What one Receive is asked for at most, whatever the window.
const (
	maxRoom      = 1 << 16
	maxRoomBytes = 1 << 40
)

// adjust tells the receiver that the room has changed; x.mu is held.
func (x *subscription) adjust() {
	if x.recall == nil {
		wake(x.toReceiver)
		return
	}
	now := x.room()
	if now.Messages < x.given.Messages || now.Bytes < x.given.Bytes || x.given.Messages == 0 && now.Messages > 0 {
		x.recall()
	}
}

// stopIntake ends intake: a Receive under way is called back, and where it does
// not return within the limit the subscription is ended without it.
func (x *subscription) stopIntake() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped {
		return
	}
	x.stopped = true
	x.limit = time.AfterFunc(x.server.options.AuthorLimit, func() {
		x.end(newFault(core.FaultTimeout, "transport does not return from Receive"))
	})
	if x.recall != nil {
		x.recall()
	}
	wake(x.toReceiver)
}

// end sends Ended, once.
func (x *subscription) end(fault *core.Fault) {
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return
	}
	x.over = true
	if x.limit != nil {
		x.limit.Stop()
	}
	x.mu.Unlock()
	if fault != nil {
		x.log.Warn("subscription ended", "error", fault)
	}
	x.tell(&frame.SubscribeResponse{Ended: ended(fault)})
	close(x.ended)
}

// queue takes verdicts for the settler. What of them lies in the reader's
// buffer is cloned.
func (x *subscription) queue(runs []frame.VerdictRun) *core.Fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.runs)+len(runs) > maxVerdictRuns {
		return newFault(core.FaultExhausted,
			"%d verdict runs wait on the subscription: send no more verdicts than there are deliveries", len(x.runs))
	}
	from := len(x.runs)
	x.runs = append(x.runs, runs...)
	x.queued += uint64(len(runs))
	for i := range x.runs[from:] {
		r := &x.runs[from+i]
		r.Reason = strings.Clone(r.Reason)
	}
	wake(x.toSettler)
	return nil
}

// asked is a seek, and how many verdict runs had come before it: they are carried
// out before.
type asked struct {
	to     Position
	behind uint64
}

// queueSeek takes a seek for the receiver, which calls its Receive back first.
func (x *subscription) queueSeek(p *transportpb.Seek) *core.Fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.seeks) >= maxSeeks {
		return newFault(core.FaultExhausted, "%d seeks wait on the subscription: wait for their answers", len(x.seeks))
	}
	x.seeks = append(x.seeks, asked{position(p), x.queued})
	if x.recall != nil {
		x.recall()
	}
	wake(x.toReceiver)
	return nil
}

// position reads a position.
func position(p *transportpb.Seek) Position {
	to := Position{Value: append([]byte(nil), p.GetValue()...)}
	if k := p.GetKind(); k > 0 && k <= transportpb.PositionKind(PositionExact) {
		to.Kind = PositionKind(k)
	}
	if to.Kind == PositionTime {
		to.Time = time.Unix(0, p.GetTime())
	}
	return to
}
