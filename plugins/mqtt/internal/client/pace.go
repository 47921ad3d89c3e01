// SPDX-License-Identifier: Apache-2.0

package client

import "time"

// pace makes a reader wait a moment before it reads on, while packets come one
// after the other faster than they can be worth it: each read wakes everybody on
// the way to the handler and back, which costs many times what a packet does. The
// server is asked for nothing less meanwhile, and what it sends is read at once
// then. Where the flow depends on what we answer, and a wait would slow it down,
// that shows in its rate: then the reader waits no more, for some time.
//
// The zero value is a pace that does not wait. One goroutine uses it.
type pace struct {
	waits   bool  // the reader waits before each read
	reads   int   // of the stretch
	packets int   // that came in it
	began   int64 // when the stretch did, in nanoseconds; 0 = with the next read
	last    int64 // read
	before  int64 // packets a second without waits
	proved  int   // stretches with waits
	skip    int   // stretches without waits before the next try
	skips   int   // what skip will be
}

const (
	// pauseFor is how long a reader waits. Go's timers are as exact as a
	// millisecond where a process has nothing else to do.
	pauseFor = 500 * time.Microsecond
	// quickReads are the reads of a stretch without waits, quickTime what they take
	// at most in a flow that is worth waits: 5,000 a second.
	quickReads = 256
	quickTime  = quickReads * 200 * time.Microsecond
	// fewPackets come with a read on average in such a flow, at most: where more
	// come, they are handled together anyway.
	fewPackets = 16
	// slowReads are the reads of a stretch with waits. worthPackets come with each
	// of them on average, at least, where the waits are worth it.
	slowReads    = 64
	worthPackets = 4
	// idleTime between two reads is the end of a flow: many times what a busy machine
	// makes of a wait.
	idleTime = 20 * time.Millisecond
	// mostSkips bounds the stretches without waits behind those that were not worth
	// it: about a second.
	mostSkips = 64
	// provedStretches with waits show that the flow bears them: what comes after it
	// is tried at once.
	provedStretches = 8
)

// next takes note of a read at a time, with so many packets, and says how long to
// wait before the next one.
func (p *pace) next(now int64, packets int) time.Duration {
	if p.began == 0 {
		p.began, p.last = now, now
		return 0
	}
	p.reads++
	p.packets += packets
	took, gap := time.Duration(now-p.began), time.Duration(now-p.last)
	p.last = now
	switch {
	case p.waits && gap > idleTime: // the flow is over
		p.waits, p.began = false, now
	case p.waits && p.reads == slowReads:
		p.proven(p.rate(took))
		p.began = now
	case !p.waits && took > quickTime:
		p.began = now // it is no such flow
	case !p.waits && p.reads == quickReads:
		p.try(p.rate(took))
		p.began = now
	default:
		return p.pause()
	}
	p.reads, p.packets = 0, 0
	return p.pause()
}

func (p *pace) pause() time.Duration {
	if p.waits {
		return pauseFor
	}
	return 0
}

// rate is what came a second.
func (p *pace) rate(took time.Duration) int64 {
	return int64(p.packets) * int64(time.Second) / max(int64(took), 1)
}

// try begins to wait, at the end of a stretch without waits.
func (p *pace) try(rate int64) {
	switch {
	case p.packets > fewPackets*quickReads:
	case p.skip > 0:
		p.skip--
	default:
		p.waits, p.before, p.proved = true, rate, 0
	}
}

// proven goes on waiting, at the end of a stretch with waits, or ends it.
func (p *pace) proven(rate int64) {
	if p.packets >= worthPackets*slowReads && rate >= p.before-p.before/8 {
		if p.proved++; p.proved > provedStretches || rate > p.before {
			p.before = (p.before + rate) / 2 // a flow may become slower by itself
		}
		return
	}
	p.waits = false
	if p.proved >= provedStretches {
		p.skips = 0
	}
	p.skips = min(max(2*p.skips, 1), mostSkips)
	p.skip = p.skips
}
