// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/core"
)

// examples is how many events of a kind are shown; the rest are counted.
const examples = 2

// screen counts and shows. It may be used from any goroutine.
type screen struct {
	style term.Style
	live  bool
	total int // lines

	mu      sync.Mutex
	out     io.Writer
	err     error // of the first write that failed; nothing is shown after it
	c       counts
	shown   map[string]int // events by kind
	letters []letter
	runs    map[string][]uint64 // attempts of each airport, as they came
	bar     bool                // the last line is the progress, without a line end
	started time.Time
}

// letter is a dead letter.
type letter struct {
	airport          airport
	attempts, reason string
}

func newScreen(o Options, total int) *screen {
	return &screen{style: o.Style, live: o.Live, total: total, out: o.Out, shown: map[string]int{}, runs: map[string][]uint64{}, started: time.Now()}
}

// put writes. The caller holds the lock.
func (s *screen) put(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.out, format, args...)
	}
}

// count changes the counts.
func (s *screen) count(f func(c *counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.c)
}

// handled counts one run of the handler.
func (s *screen) handled(a airport, attempt uint64, said, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[a.IATA] = append(s.runs[a.IATA], attempt)
	if attempt == 1 {
		s.c.first++
	} else {
		s.c.again++
	}
	switch said {
	case "acked":
		s.c.acked++
		return
	case "retried":
		s.c.retried++
	case "delayed":
		s.c.delayed++
		said = "retried later"
	case "dropped":
		s.c.dropped++
	case "panicked":
		s.c.panicked++
	}
	s.event(said, fmt.Sprintf("%s %s, attempt %d: %s", a.IATA, a.City, attempt, reason))
}

// bad counts a line that the plugin could not read.
func (s *screen) bad(position, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.bad++
	s.event("bad line", strings.TrimPrefix(position+": "+reason, ": "))
}

// undecodable counts a message that is no airport.
func (s *screen) undecodable(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.undecodable++
	s.event("undecodable", reason)
}

// dead keeps a dead letter.
func (s *screen) dead(a airport, attempts, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.dead++
	s.letters = append(s.letters, letter{a, attempts, reason})
	s.event("dead letter", fmt.Sprintf("%s %s", a.IATA, a.City))
}

// refiled counts an airport that the second stage tries again.
func (s *screen) refiled(a airport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.refiled++
	s.event("tried again", fmt.Sprintf("%s %s: %v", a.IATA, a.City, errPage))
}

// busy counts an airport that the third stage tries again.
func (s *screen) busy(a airport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.busy++
	s.event("told later", fmt.Sprintf("%s %s: %v", a.IATA, a.City, errTower))
}

// cutOff shows where the connection of the third stage was cut.
func (s *screen) cutOff(a airport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event("cut off", fmt.Sprintf("the towers, when they were told of %s %s", a.IATA, a.City))
}

// wait returns when something is so, when ctx ends, or at the limit.
func (s *screen) wait(ctx context.Context, limit time.Duration, until func(*counts) bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		s.mu.Lock()
		so := until(&s.c)
		s.mu.Unlock()
		if so {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// event shows the first events of each kind. The caller holds the lock.
func (s *screen) event(kind, text string) {
	s.shown[kind]++
	if s.shown[kind] > examples {
		return
	}
	s.clear()
	s.put("  %s  %s\n", s.paint(kind, fmt.Sprintf("%-13s", kind)), cut(text))
}

// cut keeps an event on one line.
func cut(text string) string {
	const most = 100
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most-3]) + "..."
}

// paint colours a kind of event.
func (s *screen) paint(kind, text string) string {
	switch kind {
	case "bad line", "undecodable", "panicked", "dead letter":
		return s.style.Red(text)
	}
	return s.style.Yellow(text)
}

// clear takes the progress away. The caller holds the lock.
func (s *screen) clear() {
	if s.bar {
		s.put("\r\x1b[K")
		s.bar = false
	}
}

// follow shows the progress until the returned function is called.
func (s *screen) follow() (stop func()) {
	every := time.Second
	if s.live {
		every = 100 * time.Millisecond
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				s.progress()
			case <-quit:
				s.mu.Lock()
				s.clear()
				s.mu.Unlock()
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// barWidth is the length of the progress bar in characters.
const barWidth = 24

// progress shows how far it is.
func (s *screen) progress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.c
	text := fmt.Sprintf("%3d of %d lines: %d acked, %d retried, %d dropped, %d panicked, %d dead letters",
		c.fed, s.total, c.acked, c.retried+c.delayed, c.dropped, c.panicked, c.dead)
	if !s.live {
		s.put("  %s\n", text)
		return
	}
	done := barWidth * c.fed / max(s.total, 1)
	bar := s.style.Green(strings.Repeat("#", done)) + s.style.Faint(strings.Repeat(".", barWidth-done))
	s.clear()
	s.put("  %s %s", bar, text)
	s.bar = true
}

// opening shows what is going to happen.
func (s *screen) opening(tables []core.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("%s\n\n", s.style.Bold("longshore demo"))
	s.put(`%d lines about airports go through three stages. Each is a host whose transports
run as plugin processes of their own: the register reads a pipe, the directory
a ZeroMQ queue, the towers an MQTT broker.

    feed | register -> queue -> directory -> broker -> towers

The register forwards most airports as %s. Some it retries (busy), some it
retries later (rate limit), some it drops (closed), and on those below sea level
it panics. After attempt %d an airport is sent as %s. The directory tries a few
again, appends the others to a stream file, which is read in the end, and announces
them to the towers. Those are away meanwhile, and are cut off once when they are back.

`, s.total, keyDirectory, maxAttempts, keyDead)
	s.put("%s\n", s.style.Bold("What each outcome must lead to (longshore explain)"))
	s.put("%s", foretold(tables))
	s.put("%s\n", s.style.Faint(legend))
	s.put("\n%s\n", s.style.Bold("What happens (the first of each kind)"))
}

// odd lists the airports whose attempts do not follow one another: where a line
// was lost or doubled. The caller holds the lock.
func (s *screen) odd() []string {
	var list []string
	for _, iata := range slices.Sorted(maps.Keys(s.runs)) {
		for i, attempt := range s.runs[iata] {
			if attempt != uint64(i+1) {
				list = append(list, fmt.Sprintf("%s came at attempts %v", iata, s.runs[iata]))
				break
			}
		}
	}
	return list
}

// legend explains the steps.
const legend = `  FORWARD(x): the airport leaves for x and is confirmed before it is acked.
  PUBLISH(x,n): a copy leaves for x and is confirmed; n copies so far. PUBLISH+d: after d.
  RELEASE: a pipe cannot be acked, so the delivery is only forgotten. WARN(code): a log line.`

// deadLetters shows the dead letters.
func (s *screen) deadLetters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("\n%s\n", s.style.Bold("Dead letters, as the next stage read them"))
	for _, l := range s.letters {
		s.put("  %s %-14s %s attempts: %s\n", s.style.Blue(l.airport.IATA), l.airport.City, l.attempts, l.reason)
	}
}

// towersBack begins to show what the towers are told when they are back.
func (s *screen) towersBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("\n%s\n", s.style.Bold("The towers, which were away, and are cut off once (the first of each kind)"))
}

// towersTold shows what became of the announcements.
func (s *screen) towersTold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.heard = true
	s.put("  %d deliveries: %d airports, %d tried again, %d known already\n", s.c.told+s.c.busy+s.c.twice, s.c.told, s.c.busy, s.c.twice)
	s.put("%s\n", s.style.Faint(towersLegend))
}

// logbook shows what a replay and the two runs of a group have read from the
// stream file.
func (s *screen) logbook(records []record, before, after resumption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.read, s.c.before, s.c.after = true, before.airports, after.airports
	s.put("\n%s\n", s.style.Bold("The stream file, replayed: what another system wrote before the directory"))
	for _, r := range records {
		s.put("  %-12s %s  attempt %d  %s  x-tenant: %s\n", r.key, r.sequence, r.attempt, r.payload, r.tenant)
	}
	s.put("%s\n", s.style.Faint(replayLegend))
	s.put("\n%s\n", s.style.Bold("The directory in it, read by a group that is stopped and started again"))
	for _, r := range []struct {
		what string
		resumption
	}{{"stopped", before}, {"started again", after}} {
		s.put("  %-14s %3d airports, sequence %s to %s\n", r.what, r.airports, r.first, r.last)
	}
	s.put("%s\n", s.style.Faint(groupLegend))
}

// These explain what is shown.
const (
	towersLegend = `  The broker has kept what was announced, and sends again what was not acked: nothing
  is missing, and what was handled when its ack was lost came twice.`
	replayLegend = `  Copies and dead letters carry the count of their message, so a replay knows their
  attempt. It has ended by itself, at the end of the file.`
	groupLegend = `  What a group acked is kept beside the file: nothing is read twice or left out.`
)

// closing shows the balance, and returns what does not add up.
func (s *screen) closing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("\n%s\n", s.style.Bold("The balance"))
	var wrong []string
	for _, line := range s.c.balance() {
		mark := s.style.Green("ok")
		if !line.ok() {
			mark = s.style.Red("WRONG")
			wrong = append(wrong, fmt.Sprintf("%d %s are not %v", line.total, line.what, line))
		}
		s.put("  %-22s %4d = %s  %s\n", line.what, line.total, line, mark)
	}
	if len(wrong) > 0 {
		return &BalanceError{Lines: append(wrong, s.odd()...)}
	}
	s.put("\nEverything adds up, after %v.\n", time.Since(s.started).Round(100*time.Millisecond))
	if s.err != nil {
		return fmt.Errorf("show the demo: %w", s.err)
	}
	return nil
}
