// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// waitingPayload is a small message: what a copy costs beside it counts most.
const waitingPayload = 100

// Waiting is what copies cost that wait in memory for their time.
type Waiting struct {
	Payload int  `json:"payload"`
	Count   Kept `json:"count"` // under a limit of copies
	Bytes   Kept `json:"bytes"` // under a limit of bytes
}

// Kept is one host full of waiting copies.
type Kept struct {
	MaxCopies int   `json:"max_copies"`
	MaxBytes  int64 `json:"max_bytes"`

	Copies int           `json:"copies"` // that wait
	Heap   int64         `json:"heap"`   // of the process, beyond that of the idle one
	Each   float64       `json:"each"`   // heap a copy, its message included
	Took   time.Duration `json:"took_ns"`
}

// measureWaiting fills a host with n copies, and another one under a limit of
// bytes that takes about a quarter of them.
func measureWaiting(ctx context.Context, plugin string, n int) (*Waiting, error) {
	w := &Waiting{Payload: waitingPayload}
	var err error
	if w.Count, err = keep(ctx, plugin, n, math.MaxInt64); err != nil {
		return nil, err
	}
	if w.Count.Copies != n {
		return nil, fmt.Errorf("%d copies wait under a limit of %d", w.Count.Copies, n)
	}
	if w.Bytes, err = keep(ctx, plugin, math.MaxInt, w.Count.Heap/4); err != nil {
		return nil, err
	}
	return w, nil
}

// keep lets each delivery come again in an hour until no more copies are kept.
func keep(ctx context.Context, plugin string, messages int, bytes int64) (k Kept, err error) {
	k = Kept{MaxCopies: messages, MaxBytes: bytes}
	before := hold()
	var handled atomic.Uint64
	h, e := newHost(plugin, host.WithWaitingLimits(messages, bytes))
	o := source.Options{Frame: Base.Frame, Payload: waitingPayload, Copies: true}
	host.Handle(e.Subscription("bench", host.Options(o), host.Window(Base.Window, windowBytes)),
		func(context.Context, *host.Message[[]byte]) error {
			handled.Add(1)
			return host.RetryAfter(time.Hour, nil)
		}, host.RetryTo(e.To("bench")))
	at := time.Now()
	r := runHost(ctx, h)
	least := uint64(1)
	if bytes == math.MaxInt64 {
		least = uint64(messages) //nolint:gosec // of a plan
	}
	err = r.until(ctx, still(&handled, least))
	k.Took = time.Since(at) - quiet
	if err == nil {
		k.Heap = hold().since(before).heap
	}
	h.Abort()
	k.Copies, err = cutOff(errors.Join(err, r.end()))
	k.Each = float64(k.Heap) / float64(k.Copies)
	return k, err
}

// quiet is how long nothing may be handled before a host counts as full: many
// times the pauses of a collection.
const quiet = 2 * time.Second

// still reports true once the number was above 0 and has not changed for the
// time quiet.
func still(n *atomic.Uint64, least uint64) func() bool {
	last, at := n.Load(), time.Now()
	return func() bool {
		if now := n.Load(); now != last {
			last, at = now, time.Now()
		}
		return last >= least && time.Since(at) >= quiet
	}
}

// cutOff takes the number of copies out of the error of a stop that has cut
// them off.
func cutOff(err error) (copies int, _ error) {
	var abandoned *host.AbandonedError
	if !errors.As(err, &abandoned) {
		return 0, errors.Join(errors.New("no copies wait"), err)
	}
	for _, s := range abandoned.Subscriptions {
		copies += s.Copies
	}
	return copies, nil
}

// write writes the lines of the table; w may be nil.
func (w *Waiting) write(out *strings.Builder) {
	if w == nil {
		return
	}
	fmt.Fprintf(out, "\nwaiting copies (%d B)\theap\tB a copy\tfilled in\n", w.Payload)
	fmt.Fprintf(out, "%d, the limit\t%.0f MiB\t%.0f\t%v\n", w.Count.Copies, mib(w.Count.Heap), w.Count.Each, w.Count.Took.Round(time.Millisecond))
	fmt.Fprintf(out, "%d, limit %.0f MiB\t%.0f MiB\t%.0f\t%v\n", w.Bytes.Copies, mib(w.Bytes.MaxBytes),
		mib(w.Bytes.Heap), w.Bytes.Each, w.Bytes.Took.Round(time.Millisecond))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
