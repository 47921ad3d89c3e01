// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/memory"
)

// The default limits of waits. In a bubble an hour of backoff passes at once, so
// its limit is far longer; it is reached as fast when nothing is left to happen.
const (
	waitLimit       = time.Minute // of a busy machine
	waitLimitBubble = 24 * time.Hour
)

// bubbleEnd is a time that the clock of a synctest bubble, which begins with the
// year 2000, does not reach, and that lies in the past of every other clock.
var bubbleEnd = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// bubbled reports whether the caller runs in a synctest bubble.
func bubbled() bool { return time.Now().Before(bubbleEnd) }

// waitLimit returns how long a wait may take.
func (b *Broker) waitLimit() time.Duration { return limitOr(b.limit) }

func limitOr(d time.Duration) time.Duration {
	switch {
	case d > 0:
		return d
	case bubbled():
		return waitLimitBubble
	default:
		return waitLimit
	}
}

// errHostEnded ends a wait when no host of the broker runs any more.
var errHostEnded = errors.New("the host has ended")

// wait is one wait of a test.
type wait struct {
	broker *Broker
	what   string
	began  time.Time
	ctx    context.Context //nolint:containedctx // of the wait, which is one call
	end    func()
}

// wait begins a wait, which ends at its limit, with the test, and with the last
// host on the broker.
func (b *Broker) wait(tb testing.TB, what string) *wait {
	ctx, cancel := context.WithCancelCause(tb.Context())
	ctx, timeout := context.WithTimeout(ctx, b.waitLimit())
	b.mu.Lock()
	services := append([]*Service(nil), b.services...)
	b.mu.Unlock()
	stop := func() bool { return true }
	if len(services) > 0 { // those before it have ended, or end by themselves
		stop = context.AfterFunc(services[len(services)-1].life, func() { cancel(errHostEnded) })
	}
	return &wait{broker: b, what: what, began: time.Now(), ctx: ctx, end: func() {
		stop()
		timeout()
		cancel(nil)
	}}
}

// until waits until done says so; its text is what there is instead.
func (w *wait) until(tb testing.TB, done func(v memory.View) (bool, string)) {
	tb.Helper()
	defer w.end()
	flooded, there := false, ""
	look := func(v memory.View) (ok bool) {
		ok, there = done(v)
		flooded = v.Flooded()
		return ok
	}
	if err := w.broker.queues.Wait(w.ctx, w.what, func(v memory.View) bool { return look(v) || flooded }); err == nil && !flooded {
		return
	}
	// What came together with the end counts.
	ok := false
	w.broker.view(func(v memory.View) { ok = look(v) })
	if !ok {
		w.fail(tb, there)
	}
}

// fail ends the test with what was waited for, what there is instead, why the
// wait ended, and where every message is.
func (w *wait) fail(tb testing.TB, there string) {
	tb.Helper()
	defer w.end()
	why := ""
	switch cause := context.Cause(w.ctx); {
	case w.broker.flooded():
		why = ", and " + w.broker.roundabout()
	case errors.Is(cause, errHostEnded):
		why = ", and the host has ended"
	case errors.Is(cause, context.Canceled):
		why = ", and the test has ended"
	}
	tb.Fatalf("hosttest: waited %v for %s%s: %s\n%s", time.Since(w.began).Round(time.Microsecond), w.what, why, there, w.broker.report())
}

func (b *Broker) flooded() bool {
	flooded := false
	b.view(func(v memory.View) { flooded = v.Flooded() })
	return flooded
}

// roundabout says which limit is reached.
func (b *Broker) roundabout() string {
	text := fmt.Sprintf("the broker has made %d deliveries or taken as many messages, its MessageLimit: something goes round", b.most)
	b.view(func(v memory.View) {
		if m, ok := v.Round(); ok {
			text = fmt.Sprintf("message %d of %q, %s, has come back %d times, the broker's ReturnLimit: it goes round",
				fromMemory(m).ID, m.Queue, excerpt(m.Payload), b.back)
		}
	})
	return text
}

// view shows f the queues at one moment.
func (b *Broker) view(f func(v memory.View)) {
	_ = b.queues.Wait(context.Background(), "", func(v memory.View) bool { f(v); return true }) // never waits
}

// WaitPublished waits until the service has published n messages to a name, and
// returns them, and those that came beside them.
func (b *Broker) WaitPublished(tb testing.TB, name string, n int) []Message {
	tb.Helper()
	var got []Message
	b.wait(tb, fmt.Sprintf("%s published to %q", count(n, "message"), name)).until(tb, func(v memory.View) (bool, string) {
		got = published(v.Published(name))
		return len(got) >= n, count(len(got), "message") + " came"
	})
	return got
}

// WaitVerdicts waits until the host has given n verdicts on a subscription's
// deliveries, and returns them, and those that came beside them.
func (b *Broker) WaitVerdicts(tb testing.TB, subscription string, n int) []Verdict {
	tb.Helper()
	var got []Verdict
	b.wait(tb, fmt.Sprintf("%s on %q", count(n, "verdict"), subscription)).until(tb, func(v memory.View) (bool, string) {
		got = verdicts(v.Verdicts(subscription))
		return len(got) >= n, count(len(got), "verdict") + " came"
	})
	return got
}

// WaitDelivered waits until the broker has made n deliveries of a subscription's
// own queue, each return of a message counted again.
func (b *Broker) WaitDelivered(tb testing.TB, subscription string, n int) {
	tb.Helper()
	b.wait(tb, fmt.Sprintf("%s of %q", count(n, "delivery"), subscription)).until(tb, func(v memory.View) (bool, string) {
		made := v.Account(subscription).Deliveries
		return made >= n, count(made, "delivery") + " made"
	})
}

// Handled delivers one message and returns the first verdict on it.
func (b *Broker) Handled(tb testing.TB, subscription string, m Message) Verdict {
	tb.Helper()
	id := b.Deliver(subscription, m)[0]
	var got Verdict
	b.wait(tb, fmt.Sprintf("a verdict on message %d of %q", id, subscription)).until(tb, func(v memory.View) (bool, string) {
		for _, one := range verdicts(v.Verdicts(subscription)) {
			if one.ID == id {
				got = one
				return true, ""
			}
		}
		return false, "none came"
	})
	return got
}

// count writes a number of things.
func count(n int, of string) string {
	switch {
	case n == 1:
		return "1 " + of
	case of == "delivery":
		return fmt.Sprintf("%d deliveries", n)
	default:
		return fmt.Sprintf("%d %ss", n, of)
	}
}
