// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// Point is a place in a plugin's life where a test can stop or refuse it.
type Point string

// The points. The first two need the broker's address in the plugin's
// environment under EnvAddress, Configure and Inspect that or the setting
// control.
const (
	AtExec      Point = "exec"     // main has begun, no handshake yet
	AtDescribe  Point = "describe" // cannot be denied
	AtConfigure Point = "configure"
	AtInspect   Point = "inspect"
	AtConnect   Point = "connect"
	AtSubscribe Point = "subscribe"
	AtClose     Point = "close"
	AtEnd       Point = "end" // a subscription is being closed; cannot be denied
)

// EnvAddress names the environment variable that gives a plugin the broker's
// address before it is configured.
const EnvAddress = "LONGSHORE_MEMORY_ADDRESS"

// Stopped is a plugin that waits at a point.
type Stopped struct {
	PID        int
	Endpoint   string // "" before Configure
	Generation uint64
	Name       string // of the subscription, at AtSubscribe and AtEnd
}

// Pause stops plugins at a point.
type Pause struct {
	b        *Broker
	endpoint string
	at       Point
	reached  chan Stopped
	waiting  []func() // under the broker's lock
}

// PauseAt stops every plugin that reaches the point until Release. endpoint ""
// means every endpoint; before Configure a plugin has none.
func (b *Broker) PauseAt(endpoint string, at Point) *Pause {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &Pause{b: b, endpoint: endpoint, at: at, reached: make(chan Stopped, 64)}
	b.stops = append(b.stops, p)
	return p
}

// Reached waits for the next plugin that has stopped there.
func (p *Pause) Reached(ctx context.Context) (Stopped, error) {
	select {
	case s := <-p.reached:
		return s, nil
	case <-ctx.Done():
		return Stopped{}, context.Cause(ctx)
	}
}

// Release lets all that have stopped there go on, and stops nothing more.
func (p *Pause) Release() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.release()
}

func (p *Pause) release() {
	for _, f := range p.waiting {
		f()
	}
	p.waiting = nil
	p.b.stops = without(p.b.stops, p)
}

// denial refuses plugins at a point.
type denial struct {
	endpoint string
	at       Point
	times    int // 0 = always
	fault    *core.Fault
}

// Deny refuses plugins at a point: the next times, or always when times is 0.
// At AtInspect the refusal is a finding about the endpoint. The returned
// function takes it away.
func (b *Broker) Deny(endpoint string, at Point, times int, f *core.Fault) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &denial{endpoint: endpoint, at: at, times: times, fault: f}
	b.denials = append(b.denials, d)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.denials = without(b.denials, d)
	}
}

// at answers a plugin that has reached a point, now or when a pause ends.
func (b *Broker) at(p *peer, f *wire.Frame) {
	answer := func() { p.send(reply(f.Req, b.denied(p, Point(f.Text)))) }
	for _, s := range b.stops {
		if s.at == Point(f.Text) && (s.endpoint == "" || s.endpoint == p.endpoint) {
			s.waiting = append(s.waiting, answer)
			select {
			case s.reached <- Stopped{PID: p.pid, Endpoint: p.endpoint, Generation: p.generation, Name: f.Name}:
			default: // nobody counts that many
			}
			return
		}
	}
	answer()
}

func (b *Broker) denied(p *peer, at Point) *core.Fault {
	for _, d := range b.denials {
		if d.at != at || d.endpoint != "" && d.endpoint != p.endpoint {
			continue
		}
		if d.times > 0 {
			if d.times--; d.times == 0 {
				b.denials = without(b.denials, d)
			}
		}
		return d.fault
	}
	return nil
}
