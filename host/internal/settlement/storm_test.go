// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// dice is a source of chance for several goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 1))} }

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// shake makes a plugin answer at random.
func (s storm) shake(p *plugin, d *dice) {
	p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
		if d.n(10) >= s.failures {
			return frame.Receipt{Status: frame.ReceiptConfirmed}, true
		}
		switch d.n(5) {
		case 0:
			return frame.Receipt{Status: frame.ReceiptUnknown}, true
		case 1:
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no"}}, true
		case 2:
			id := o.ID
			time.AfterFunc(time.Duration(d.n(5000))*time.Millisecond, func() {
				p.receipts <- frame.Receipt{ID: id, Status: frame.ReceiptConfirmed}
			})
			return frame.Receipt{}, false
		default:
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no", Transient: true}}, true
		}
	}
	p.answer = func(v frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
		if d.n(10) >= s.failures {
			return frame.SettleDone, nil
		}
		return []frame.SettleStatus{frame.SettleStale, frame.SettleFailed, frame.SettleUnsupported}[d.n(3)], nil
	}
}

// leaks says how many frames still have holders: one without panics when it is
// released once more, and again when it is retained, which makes it as before.
func leaks(frames map[*frame.Deliveries]bool) string {
	held := 0
	for f := range frames {
		if !panics(f.Release) {
			held++
			continue
		}
		panics(func() { f.Retain(1) })
	}
	if held > 0 {
		return fmt.Sprintf("%d of %d frames are still held", held, len(frames))
	}
	return ""
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// shaky is a journal that fails at random.
type shaky struct {
	*journal
	fails func() bool
}

func (j *shaky) Store(ctx context.Context, c Copy, d time.Duration) (string, error) {
	if j.fails() {
		return "", io.ErrShortWrite
	}
	return j.journal.Store(ctx, c, d)
}

func (j *shaky) Forget(ctx context.Context, row string) error {
	if j.fails() {
		return io.ErrShortWrite
	}
	return j.journal.Forget(ctx, row)
}

func (j *shaky) Park(ctx context.Context, c Copy, row, reason string) error {
	if j.fails() {
		return io.ErrShortWrite
	}
	return j.journal.Park(ctx, c, row, reason)
}
