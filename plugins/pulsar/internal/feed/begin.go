// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// resolve adds the partitions that there are at the start.
func (f *Feed) resolve(ctx context.Context) error {
	for _, t := range f.Topics {
		n := 0
		if t.Name.Partition == topic.NoPartition {
			err := f.insist(ctx, t.Name.String(), func() (err error) {
				n, err = f.Client.Partitions(ctx, t.Name) // it may create the topic, as a subscription does
				return err
			})
			if err != nil {
				return err
			}
		}
		f.reconcile(f.topics[t.Name], n, f.Earliest)
	}
	if f.Pattern == nil {
		return nil
	}
	return f.insist(ctx, f.Pattern.String(), func() error { return f.match(ctx, f.Earliest) })
}

// begin makes the first consumer.
func (p *Partition) begin(ctx context.Context) error {
	return p.feed.insist(ctx, p.Scope, func() error {
		m, err := p.feed.subscribe(ctx, p)
		if err == nil {
			p.join(m)
		}
		return err
	})
}

// insist tries until it succeeds, trying cannot help, it has tried Attempts times, or
// ctx ends; then its error is what the last try met. The first failure is logged: a
// start may wait for long.
func (f *Feed) insist(ctx context.Context, of string, try func() error) error {
	var last *core.Fault
	for n := 1; ; n++ {
		err := try()
		if err == nil {
			return nil
		}
		if refused := f.Client.Err(); refused != nil {
			err = refused
		}
		if last == nil || ctx.Err() == nil {
			last = client.Explain(fmt.Sprintf("subscribe to %s as %q", of, f.Subscription), err)
		}
		if ctx.Err() != nil || !last.Transient || n == f.Attempts {
			return counted(last, n)
		}
		if n == 1 {
			f.Log.Warn("Pulsar subscription cannot begin yet", "subscription", f.Subscription, "topic", of, "error", last)
		}
		f.rest(ctx)
	}
}

// rest waits between two tries, or until none can help.
func (f *Feed) rest(ctx context.Context) {
	t := time.NewTimer(f.RetryDelay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.Client.Fatal():
	case <-ctx.Done():
	}
}

// counted is the fault of the last of n tries.
func counted(last *core.Fault, n int) *core.Fault {
	if n == 1 {
		return last
	}
	return fault.Of(fmt.Sprintf("after %d tries", n), last)
}
