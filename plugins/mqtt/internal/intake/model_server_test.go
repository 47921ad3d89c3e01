// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// sendSome sends new messages in one read, and PUBRELs that are due.
func (m *model) sendSome() {
	var list []sent
	for range 1 + m.r.IntN(4) {
		if m.flight() >= m.most && m.r.IntN(2) > 0 {
			continue
		}
		x := &modelMessage{n: len(m.all), qos: byte(m.r.IntN(3)), parts: map[string]int{}, runs: map[string]int{}, excused: map[string]bool{}}
		if x.qos > 0 && m.flight() >= m.most {
			x.qos = 0
		}
		for _, w := range m.wires {
			if m.r.IntN(2) == 0 {
				x.wires = append(x.wires, w)
			}
		}
		if len(x.wires) == 0 {
			x.wires = m.wires[:1]
		}
		m.all = append(m.all, x)
		if x.qos > 0 {
			x.id, x.state = m.freeID(), "sent"
			m.session = append(m.session, x)
		}
		list = append(list, m.transmit(x, false))
	}
	for _, x := range m.session {
		if x.state == "received" && m.r.IntN(2) == 0 {
			m.note("PUBREL %d", x.id)
			list = append(list, pubrel(x.id))
		}
	}
	m.send(list...)
}

// transmit is the packet of a message on the live link.
func (m *model) transmit(x *modelMessage, dup bool) sent {
	m.note("link %d: send %s, QoS %d, id %d, DUP %v, for %v", m.link.number, x.text(), x.qos, x.id, dup, x.wires)
	left := false
	for _, w := range x.wires {
		left = left || x.parts[w] == partLeft
	}
	here := x.link == m.link.number
	switch { // whether it is a new delivery for us [MQTT-4.3.2-5]
	case x.qos == 1 && (x.written || left || !here && !x.all(partAcked)), x.qos == 2 && left && !x.written:
		x.parts = map[string]int{}
		x.life++
	}
	if x.qos == 1 {
		x.written = false
	}
	x.link, x.arrived = m.link.number, true
	return sent{topic: "a/b", payload: x.text(), qos: x.qos, id: x.id, dup: dup, for_: x.wires}
}

// sendAgain has the server send a message again on one connection, as it must not.
func (m *model) sendAgain() {
	for _, x := range m.session {
		if x.state == "sent" && x.link == m.link.number && !x.written && m.r.IntN(3) == 0 {
			m.send(m.transmit(x, true))
			return
		}
	}
}

// flight is what the server counts against the Receive Maximum.
func (m *model) flight() int {
	n := 0
	for _, x := range m.session {
		if x.link == m.link.number {
			n++
		}
	}
	return n
}

func (m *model) freeID() uint16 {
	for {
		m.nextID = m.nextID%uint16(2*m.most+4) + 1 // identifiers are used again soon
		if !slices.ContainsFunc(m.session, func(x *modelMessage) bool { return x.id == m.nextID }) {
			return m.nextID
		}
	}
}

// written looks at what has left on the live link.
func (m *model) written() {
	if m.link.over() != 0 {
		m.fail("the link was ended: %v", m.link.ended)
	}
	for _, s := range m.answers() {
		m.note("link %d: %s is written", m.link.number, s)
		m.unread = append(m.unread, s)
		var typ string
		var id uint16
		if _, err := fmt.Sscanf(s, "%s %d", &typ, &id); err != nil {
			m.fail("answer %q", s)
		}
		x := m.byID(id)
		if x == nil || typ != "PUBCOMP" && x.link != m.link.number {
			m.fail("%s is for nothing that was sent on this link", s)
		}
		switch {
		case typ == "PUBCOMP" && x.state == "received":
		case typ == "PUBACK" && x.qos == 1 && !x.written, typ == "PUBREC" && x.qos == 2:
			if !x.all(partAcked) {
				m.fail("%s, and not all have acked %s: %v of %v", s, x.text(), x.parts, x.wires)
			}
			x.written = true
		default:
			m.fail("%s is for %s in state %s, written %v", s, x.text(), x.state, x.written)
		}
	}
}

func (m *model) byID(id uint16) *modelMessage {
	for _, x := range m.session {
		if x.id == id {
			return x
		}
	}
	return nil
}

// serverReads has the server take the first n answers.
func (m *model) serverReads(n int) {
	m.written()
	n = min(n, len(m.unread))
	for _, s := range m.unread[:n] {
		var typ string
		var id uint16
		_, _ = fmt.Sscanf(s, "%s %d", &typ, &id)
		x := m.byID(id)
		switch {
		case x == nil: // a second PUBCOMP
		case typ == "PUBREC":
			x.state = "received"
		default:
			x.state = "over"
			m.session = slices.DeleteFunc(m.session, func(y *modelMessage) bool { return x == y })
		}
	}
	m.unread = m.unread[n:]
}

// reconnect makes the connection anew. The server has read some of what was
// written, it gives some messages up, and it sends the others again.
func (m *model) reconnect(present bool) {
	m.serverReads(m.r.IntN(len(m.unread) + 1))
	m.unread = nil
	m.link.die()
	for range m.r.IntN(2) { // nobody knows yet
		m.ackSome()
	}
	m.down()
	m.note("link %d is down", m.link.number)
	for range m.r.IntN(3) {
		if m.r.IntN(2) == 0 {
			m.receiveSome()
		} else {
			m.ackSome()
		}
	}
	m.up(intake.Session{Present: present, Kept: true})
	m.note("link %d is up, present %v", m.link.number, present)
	if !present {
		for _, x := range m.session {
			x.state = "lost"
		}
		m.session = nil
		return
	}
	m.session = slices.DeleteFunc(m.session, func(x *modelMessage) bool {
		if x.state != "sent" || m.r.IntN(20) > 0 {
			return false
		}
		m.note("the server gives %s up", x.text())
		x.state = "given up"
		return true
	})
	var list []sent
	for _, x := range m.session {
		if x.state == "received" {
			m.note("PUBREL %d", x.id)
			list = append(list, pubrel(x.id))
		} else {
			list = append(list, m.transmit(x, true))
		}
	}
	for len(list) > 0 { // in several reads
		n := 1 + m.r.IntN(len(list))
		m.send(list[:n]...)
		list = list[n:]
	}
}
