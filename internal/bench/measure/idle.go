// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// Idle is what subscriptions cost on the host's side that read nothing, on one
// endpoint whose plugin is a process.
type Idle struct {
	Subscriptions int           `json:"subscriptions"`
	Heap          float64       `json:"heap"`       // bytes a subscription
	Stacks        float64       `json:"stacks"`     // likewise
	Goroutines    float64       `json:"goroutines"` // a subscription
	Start         time.Duration `json:"start_ns"`   // until all are open
	Stop          time.Duration `json:"stop_ns"`
}

// measureIdle opens n subscriptions.
func measureIdle(ctx context.Context, plugin string, n int) (*Idle, error) {
	before := hold()
	h, e := newHost(plugin)
	for i := range n {
		host.Handle(e.Subscription(fmt.Sprintf("bench-%d", i), host.Options(source.Options{Frame: 1, Idle: true})),
			func(context.Context, *host.Message[[]byte]) error { return nil })
	}
	at := time.Now()
	r := runHost(ctx, h)
	if err := r.until(ctx, h.Ready); err != nil {
		return nil, errors.Join(err, r.end())
	}
	idle := &Idle{Subscriptions: n, Start: time.Since(at)}
	used := hold().since(before)
	idle.Heap, idle.Stacks = float64(used.heap)/float64(n), float64(used.stacks)/float64(n)
	idle.Goroutines = float64(used.goroutines) / float64(n)
	at = time.Now()
	err := r.end()
	idle.Stop = time.Since(at)
	return idle, err
}

// write writes the lines of the table; i may be nil.
func (i *Idle) write(out *strings.Builder) {
	if i == nil {
		return
	}
	fmt.Fprintln(out, "\nidle subscriptions\tB heap each\tB stacks each\tgoroutines each\tstart\tstop")
	fmt.Fprintf(out, "%d\t%.0f\t%.0f\t%.2f\t%v\t%v\n", i.Subscriptions, i.Heap, i.Stacks, i.Goroutines,
		i.Start.Round(time.Millisecond), i.Stop.Round(time.Millisecond))
}
