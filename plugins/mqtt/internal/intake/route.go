// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"

	"github.com/longshore-go/longshore/core"
)

// heldLoose is how many messages of QoS 0 a route keeps that nobody has opened yet.
const heldLoose = 1024

// behind is how much more than for another one may wait for a receiver that has
// its turn: one that stands still must not get its share of the server's window.
const behind = 64

// Filter is a subscription as the server knows it.
type Filter struct {
	Wire       string // with $share/group/ where it is shared; no two routes have the same
	Filter     string // without
	Identifier uint32
	QoS        byte // that is asked for
}

// Route is one filter. What comes for it goes to its open receivers in turns, and
// waits while there is none: of QoS 1 and 2 all of it, unanswered, of QoS 0 the
// newest 1,024 messages before the first is opened, and nothing after that.
type Route struct {
	in      *Intake
	filter  Filter
	qos     byte // granted
	members []*Receiver
	turn    int
	box     inbox // of what waits for a receiver
	opened  bool
	fault   *core.Fault
	gone    bool
}

// Route returns the route of a filter, which is made the first time that it is
// asked for. The filters that may be in a kept session need theirs before the
// first Up: what comes for one that has none is answered and dropped.
func (in *Intake) Route(f Filter) *Route {
	in.mu.Lock()
	defer in.mu.Unlock()
	if rt := in.routes[f.Wire]; rt != nil {
		return rt
	}
	rt := &Route{in: in, filter: f, qos: f.QoS}
	in.routes[f.Wire] = rt
	in.byID[f.Identifier] = rt
	in.byTopic.Add(f.Filter, rt)
	return rt
}

// Grant says which QoS the server has granted. It counts for receivers that are
// opened later.
func (rt *Route) Grant(qos byte) {
	rt.in.mu.Lock()
	defer rt.in.mu.Unlock()
	rt.qos = qos
}

// Open returns a receiver of the route, under the name of its subscription.
func (rt *Route) Open(name string) *Receiver {
	in := rt.in
	rc := &Receiver{in: in, route: rt, name: name, wake: make(chan struct{}, 1)}
	rc.answers.init()
	rc.batch.answers.init()
	rc.box.owner = rc
	in.mu.Lock()
	defer in.mu.Unlock()
	rc.acks, rc.fault = rt.qos > 0, rt.fault
	if in.fault != nil {
		rc.fault = in.fault
	}
	if !rt.gone {
		rt.opened = true
		rt.members = append(rt.members, rc)
		in.pass(&rt.box, &rc.box, rc)
	}
	rc.rouse()
	return rc
}

// Fail ends the route's receivers with f once they have handed out what waits.
func (rt *Route) Fail(f *core.Fault) {
	in := rt.in
	in.mu.Lock()
	defer in.mu.Unlock()
	rt.fault = f
	for _, rc := range rt.members {
		rc.fault = f
		rc.rouse()
	}
}

// Remove takes the route out: what waits for it is answered, and what comes for
// it still is left over. Receivers are closed before.
func (rt *Route) Remove() {
	in := rt.in
	var acks answers
	acks.init()
	in.mu.Lock()
	if rt.gone {
		in.mu.Unlock()
		return
	}
	rt.gone = true
	delete(in.routes, rt.filter.Wire)
	if in.byID[rt.filter.Identifier] == rt {
		delete(in.byID, rt.filter.Identifier)
	}
	in.byTopic.Remove(rt.filter.Filter, func(other *Route) bool { return other == rt })
	for rt.box.n > 0 {
		it := rt.box.pop()
		if it.handle != nil && it.handle.fate == fateQueued {
			in.settle(it.handle, &acks)
		}
		in.drop(it)
		in.counters.LeftOver++
	}
	rt.box.close()
	l := in.live
	in.mu.Unlock()
	acks.write(in, l)
}

// next is who gets the next message, nil = nobody is there. in.mu is held.
func (rt *Route) next() *Receiver {
	if len(rt.members) == 0 {
		return nil
	}
	rt.turn++
	rc := rt.members[rt.turn%len(rt.members)]
	least := rc
	for _, other := range rt.members {
		if other.box.n < least.box.n {
			least = other
		}
	}
	if rc.box.n > least.box.n+behind {
		return least
	}
	return rc
}

// match returns the routes that a packet is for: those whose identifiers it
// carries; where it has none, or those of nobody, the ones that match its topic.
// A filter that an earlier process has left in the session may be what still
// brings the messages of one that has taken its place. in.mu is held.
func (in *Intake) match(a *arrival) []*Route {
	routes := in.matched[:0]
	in.identifiers = a.publish.Identifiers(in.identifiers[:0])
	for _, id := range in.identifiers {
		if rt := in.byID[id]; rt != nil && !slices.Contains(routes, rt) {
			routes = append(routes, rt)
		}
	}
	if len(routes) == 0 {
		routes = in.byTopic.Match(routes, a.publish.Topic)
		if len(routes) > 0 && len(in.identifiers) > 0 {
			in.counters.Strays++
			in.lines.hit(lineStray, a.publish.Topic, in.clock.now())
		}
	}
	in.matched = routes
	return routes
}

// pass moves what waits from one inbox to another, and to its owner. in.mu is
// held.
func (in *Intake) pass(from, to *inbox, owner *Receiver) {
	for from.n > 0 {
		it := from.pop()
		if it.handle != nil {
			it.handle.receiver = owner
		}
		to.push(it)
	}
	from.close()
}
