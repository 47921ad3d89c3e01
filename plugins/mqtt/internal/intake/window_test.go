// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// What waits beyond the window is bounded by its bytes.
func TestBeyondTheWindow(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 2 })
	rc := b.open("a", 1)
	b.up(intake.Session{})
	large := q1(0, "a", strings.Repeat("x", 4<<20-100), "a").append(nil)
	at := bytes.IndexByte(large, 'a') + 1 // of the identifier
	id := uint16(0)
	next := func() {
		id++
		binary.BigEndian.PutUint16(large[at:], id)
		if err := b.write(large); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 + 16 { // within the window, and beyond it
		next()
	}
	want(t, "deliveries", len(rc.all()), 18)
	for range 16 { // what is handed out does not count
		next()
	}
	want(t, "the link's end", b.link.over(), byte(0))
	next()
	want(t, "the link's end", b.link.over(), packet.CodeReceiveMaximum)
	b.again()
	large[0] |= 8 // DUP
	id = 0
	for range 2 + 16 {
		next()
	}
	want(t, "the next link's end", b.link.over(), byte(0))
}

func TestReceiveMaximumIsCounted(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 2 })
	rc := b.open("a", 2)
	b.up(intake.Session{})
	for round := range uint16(5) { // acks and PUBRELs give slots back
		b.send(q1(2*round+1, "a", "x", "a"), q2(2*round+2, "a", "x", "a"))
		rc.done(rc.all()...)
		want(t, "slots", b.in.State().Flight, 1)
		b.send(pubrel(2*round + 2))
	}
	want(t, "slots", b.in.State().Flight, 0)
	b.send(q2(1, "a", "x", "a"), q2(2, "a", "y", "a"))
	rc.done(rc.all()...)
	b.again() // a PUBREL for what an older link has brought gives back nothing here
	b.send(pubrel(1))
	want(t, "slots", b.in.State().Flight, 0)
	b.send(q2(2, "a", "y", "a").again(), q1(3, "a", "z", "a"))
	want(t, "slots", b.in.State().Flight, 2)
	want(t, "the link's end", b.link.over(), byte(0))
}

// What is left of a session that is lost waits as QoS 0 does, and does not count
// against the next link.
func TestBeyondTheWindowOfALostSession(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 1 })
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"), q1(2, "a", "2", "a"), q1(3, "a", "3", "a"))
	b.lost()
	want(t, "unsound", b.in.Unsound(), "")
	want(t, "deliveries", texts(rc.all()), []string{"a 1", "a 2", "a 3"})
}
