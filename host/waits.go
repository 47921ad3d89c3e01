// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
)

// tellEvery is how often a stop says what it waits for: a stop that takes its
// normal course has ended by then.
const tellEvery = 10 * time.Second

// tellWaits logs what a stop waits for, from time to time, until the function
// that it returns is called.
func (r *run) tellWaits() (end func()) {
	ended := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		t := time.NewTicker(tellEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.tellWait()
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		told.Wait()
	}
}

// tellWait logs what is left.
func (r *run) tellWait() {
	var left []string
	add := func(n uint64, what, of string) {
		if n > 0 {
			left = append(left, fmt.Sprintf("%d %s of %s", n, what, of))
		}
	}
	for _, s := range r.subs {
		c := s.lane.Counters()
		name := core.Destination{Endpoint: s.on.endpoint.name, Name: s.sub.name}
		add(c.InWork-min(c.InWork, c.Waiting), "deliveries in work", name.String())
		if s.hooks != nil {
			add(s.hooks.waiting(), "calls of hooks", name.String())
		}
	}
	for _, w := range r.waiting.List() {
		add(uint64(w.Count), "waiting copies", core.Destination{Endpoint: w.Endpoint, Name: w.Subscription}.String())
	}
	for _, a := range r.endpoints {
		add(uint64(max(a.outbox.Missing(), 0)), "missing receipts", "endpoint "+a.endpoint.name)
	}
	if len(left) > 0 {
		r.log.Info("the stop waits", "for", strings.Join(left, ", "), "limit", r.shownLimit())
	}
}
