// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
)

// keyMark begins the payload of a message that a case made. A key has no space
// and no line break, so that every transport of text carries it.
const keyMark = "conform:"

// Messages makes n messages for a name, each with a key of its own. Their
// payloads have size bytes, or as many as the key takes.
func (t *Trial) Messages(name string, n, size int) []core.Message {
	ms := make([]core.Message, n)
	for i := range ms {
		payload := fmt.Appendf(nil, "%s%s:%d", keyMark, t.Word, t.fed.Add(1))
		if pad := size - len(payload); pad > 0 {
			payload = append(payload, ' ')
			payload = append(payload, strings.Repeat("x", pad-1)...)
		}
		t.made(keyOf(payload), payload)
		ms[i] = core.Message{Name: name, Payload: payload}
	}
	return ms
}

// keyOf finds the key in a payload.
func keyOf(payload []byte) string {
	head := string(payload[:min(len(payload), 256)])
	if !strings.HasPrefix(head, keyMark) {
		return ""
	}
	key, _, _ := strings.Cut(head, " ")
	return key
}

// Keys are the keys of messages.
func Keys(ms []core.Message) []string {
	keys := make([]string, len(ms))
	for i := range ms {
		keys[i] = keyOf(ms[i].Payload)
	}
	return keys
}

// Feed puts n small messages where the case's subscription reads them, and
// returns their keys. Through p they go where there is no injector.
func (t *Trial) Feed(p *Process, n int) []string {
	ms := t.Messages(t.feedName(), n, 0)
	t.Put(p, ms)
	return Keys(ms)
}

// feedName is the name that messages for the subscription have.
func (t *Trial) feedName() string {
	if t.Subject.Inject != nil {
		return t.Subscription()
	}
	return t.Destination()
}

// Put puts messages where the case's subscription reads them.
func (t *Trial) Put(p *Process, ms []core.Message) {
	if t.Subject.Inject == nil {
		b := p.Publisher()
		all := b.Publish(Outgoing(ms...)...)
		if t.About.Publishing.Retains == core.RetainProcess {
			// The receipt of the newest may wait for its delivery.
			b.taken(all[:len(all)-1])
			return
		}
		b.taken(all)
		return
	}
	ctx, cancel := t.limited()
	defer cancel()
	if err := t.Subject.Inject(ctx, t.place(p, t.Subscription()), ms); err != nil {
		t.Fatalf("the injector failed: %v", err)
	}
}

// Collected is what has reached the case's destination.
type Collected struct {
	t    *Trial
	stop func()
	once sync.Once

	mu      sync.Mutex
	changed chan struct{}
	got     []Arrival
	err     error
}

// Arrival is one message that reached the destination.
type Arrival struct {
	core.Message
	Key string
	At  time.Time
}

// Collect reads what reaches the case's destination from now on: by the
// collector, else by the subscription, which p opens. Whatever it reads through
// the plugin it acks.
func (t *Trial) Collect(p *Process) *Collected {
	c := &Collected{t: t, changed: make(chan struct{})}
	if t.Subject.Collect == nil {
		c.collectThrough(p)
		return c
	}
	ctx, cancel := context.WithCancel(t.Ctx)
	ready := make(chan struct{})
	var once sync.Once
	var wait sync.WaitGroup
	wait.Go(func() {
		err := t.Subject.Collect(ctx, t.place(p, t.Destination()), func() { once.Do(func() { close(ready) }) }, c.add)
		if err != nil && ctx.Err() == nil {
			c.fail(err)
		}
		once.Do(func() { close(ready) })
	})
	c.stop = func() {
		cancel()
		wait.Wait()
	}
	t.cleanup(c.stop)
	limit, end := t.limited()
	defer end()
	select {
	case <-ready:
	case <-limit.Done():
		t.Fatalf("the collector is not ready after %v", t.Subject.Wait)
	}
	return c
}

// collectThrough reads by the subscription.
func (c *Collected) collectThrough(p *Process) {
	s := p.Subscribe()
	enough := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			next := s.change()
			s.mu.Lock()
			ds, over := s.queue, s.over
			s.queue = nil
			s.mu.Unlock()
			for _, d := range ds {
				s.Finish(d)
				c.add(d.Message)
			}
			if over {
				return
			}
			select {
			case <-next:
			case <-enough:
				return
			case <-p.ctx.Done():
				return
			}
		}
	})
	c.stop = func() {
		close(enough)
		wait.Wait()
		s.End()
	}
}

// Stop ends the collecting. Behind the call of stop nothing is acked any more:
// the stream's end is under way.
func (c *Collected) Stop() { c.once.Do(c.stop) }

func (c *Collected) add(m core.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, Arrival{Message: m.Clone(), Key: keyOf(m.Payload), At: time.Now()})
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Collected) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Collected) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Arrivals waits until at least n messages have arrived and returns all so far;
// fewer where it took too long.
func (c *Collected) Arrivals(n int) []Arrival {
	ctx, cancel := c.t.limited()
	defer cancel()
	eventually(ctx, c.change, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.got) >= n || c.err != nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		c.t.Errorf("the collector failed: %v", c.err)
	}
	return append([]Arrival(nil), c.got...)
}

// Await waits until each key has arrived and returns the first arrival of each;
// the case ends where one is lost. Those that came more than once are counted
// in doubles.
func (c *Collected) Await(keys []string) (first map[string]Arrival, doubles int) {
	has := func() (map[string]Arrival, int) {
		first, doubles := map[string]Arrival{}, 0
		for _, a := range c.got {
			if _, ok := first[a.Key]; ok {
				doubles++
			} else {
				first[a.Key] = a
			}
		}
		return first, doubles
	}
	missing := func(first map[string]Arrival) (lost []string) {
		for _, k := range keys {
			if _, ok := first[k]; !ok {
				lost = append(lost, k)
			}
		}
		return lost
	}
	ctx, cancel := c.t.limited()
	defer cancel()
	eventually(ctx, c.change, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		first, _ := has()
		return len(missing(first)) == 0 || c.err != nil
	})
	c.mu.Lock()
	first, doubles = has()
	err := c.err
	c.mu.Unlock()
	if lost := missing(first); len(lost) > 0 {
		if err != nil {
			c.t.Fatalf("the collector failed: %v", err)
		}
		c.t.Fatalf("%d of %d messages did not arrive within %v: %s", len(lost), len(keys), c.t.Subject.Wait, some(lost))
	}
	return first, doubles
}

// doubled notes that something came more often than it was sent: a fault, but of
// a source whose hold may just have run out on a slow machine.
func (t *Trial) doubled(format string, args ...any) {
	if t.About.Any(hasHold) {
		t.Notef(format, args...)
		return
	}
	t.Errorf(format, args...)
}
