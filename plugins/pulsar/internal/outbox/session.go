// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// closeLimit is how long a broker may take to close a producer.
const closeLimit = 10 * time.Second

// session is a producer that is registered at a broker, over one connection. It is a
// client.ProducerHandler. Fields but those of the reading goroutine are under the
// outbox's mu.
type session struct {
	part  *part
	conn  *client.Conn
	id    uint64
	name  string
	last  int64 // the last number that the broker has of the name, -1 = none
	limit int   // bytes of a frame that the broker takes for sure

	closing bool // nothing more is written
	gone    bool // nothing more comes

	receipts []wire.SendReceipt // gathered; the reading goroutine's own
}

// maxGathered is how many receipts are gathered at most.
const maxGathered = 256

// Receipt takes a receipt, to be answered at the next pause with others.
func (s *session) Receipt(r wire.SendReceipt) {
	s.receipts = append(s.receipts, r)
	if len(s.receipts) >= maxGathered {
		s.Pause()
	}
}

// Pause answers what was confirmed, and writes what there is room for now.
func (s *session) Pause() {
	if len(s.receipts) == 0 {
		return
	}
	p := s.part
	o := p.lane.o
	o.mu.Lock()
	if p.session == s {
		p.doubt, p.pause = false, 0
		for i := range s.receipts {
			p.confirm(&s.receipts[i])
		}
		p.pump()
		p.lane.rest()
	}
	s.receipts = s.receipts[:0]
	o.leave()
}

// Failed takes a message that the broker did not store. What it alone is to blame for is
// refused; else all is sent again by another session, for brokers store nothing more
// behind what they could not.
func (s *session) Failed(number uint64, code wire.ServerError, message string) {
	s.Pause()
	p := s.part
	o := p.lane.o
	err := &client.ServerError{Code: code, Message: message}
	o.mu.Lock()
	switch {
	case p.session != s:
	case refuses(code):
		p.refuseSent(number, client.Explain("", err))
		p.pump()
		p.lane.rest()
	case !s.closing:
		o.c.Log.Debug("Pulsar broker could not store a message, sending it again", "topic", p.name, "reason", err)
		p.why = client.Explain("open the topic "+p.name, err)
		p.renew()
	}
	o.leave()
}

// refuses reports whether a broker that answers a message with a code has not stored
// it, and may have stored what is behind it: then a broker with deduplication would take
// the message, sent again, for one that it has.
func refuses(code wire.ServerError) bool {
	switch code {
	case wire.NotAllowedError, wire.TopicTerminatedError, wire.MetadataError, wire.ProducerFenced, wire.ChecksumError:
		return true
	}
	return false
}

// Room writes more.
func (s *session) Room() {
	p := s.part
	p.lane.o.mu.Lock()
	if p.session == s {
		p.pump()
		p.lane.rest()
	}
	p.lane.o.leave()
}

// Closed takes note that the broker has closed the producer: the topic moves, is
// deleted, terminated, or over its quota. What becomes of it the next session hears.
func (s *session) Closed() {
	s.finish()
	s.part.lane.o.mu.Lock()
	s.part.lost(s)
	s.part.lane.o.leave()
}

// finish answers what was confirmed up to the session's end. Nothing is written that
// nobody takes.
func (s *session) finish() {
	s.part.lane.o.mu.Lock()
	s.closing = true
	s.part.lane.o.mu.Unlock()
	s.Pause()
}

// Lost takes note that the connection has ended.
func (s *session) Lost(err error) {
	s.finish()
	p := s.part
	p.lane.o.mu.Lock()
	if p.session == s {
		p.why = client.Explain("open the topic "+p.name, err)
	}
	p.lost(s)
	p.lane.o.leave()
}

// close has the broker close the producer, which answers first what was sent, and
// waits for that.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(s.part.lane.o.parted, closeLimit)
	defer cancel()
	_, err := s.conn.Ask(ctx, wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendCloseProducer(dst, number, s.id)
	})
	if err != nil {
		s.part.lane.o.c.Log.Debug("Pulsar producer not closed by its broker", "topic", s.part.name, "reason", err)
	}
	s.conn.ForgetProducer(s.id)
}
