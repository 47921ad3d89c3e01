// SPDX-License-Identifier: Apache-2.0

// Package outbox sends what is published over one MQTT connection and tells what
// became of it, over reconnects too (ADR 0112). It keeps the order in which
// messages were added, the packet identifiers of those that the server has not
// answered yet, and the state of QoS 2 handshakes.
//
// # Caveats
//
// All of it is in memory: a process that is killed leaves handshakes of QoS 2
// open at the server. In a session that a former process has left, an identifier
// is released before it is used for the first time (OASIS MQTT 5.0, 4.3.3).
package outbox

import (
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// The bounds of what may be without a receipt. They lie far above the host's
// window of 1024 messages and 8 MiB, so that they only meet who has none.
const (
	maxMessages = 1 << 14
	maxBytes    = 128 << 20
)

// The defaults of a Config. defaultWait is long enough for a server's restart, and
// ends well within the 60 s for which a copy is tried (D2): who tries again finds
// that the copy before has not left, and never will.
const (
	defaultWindow = 1024
	defaultWait   = 20 * time.Second
)

// MaxID is the largest packet identifier that an outbox uses; those above it are
// for other packets of the client [MQTT-2.2.1-3].
const MaxID = 0xFEFF

// Config is what an outbox needs. The zero value of a field is its default.
type Config struct {
	// Window is how many messages of QoS 1 and 2 may wait for the server's answer,
	// at most MaxID; the server may allow less. Default 1024.
	Window int
	// FirstID is the smallest packet identifier that is used: as many as Window
	// from there on. Default 1; never so large that MaxID is exceeded.
	FirstID int
	// MaxPacket is the most bytes of a packet; the server may allow less. Default:
	// what the protocol allows.
	MaxPacket int
	// Wait is how long a message that was never written waits for a connection to
	// come back before it is refused. Default 20 s.
	Wait time.Duration
	// Returns reports whether a delivery comes back by itself: it was unsettled
	// when its connection ended, and its session was resumed. A copy of it is not
	// sent. It is called with the outbox's lock held. Default: none does.
	Returns func(*carry.Carry) bool
	// Log takes warnings. Default: nobody reads them.
	Log *slog.Logger
}

// Link is one connection. No method waits. Outbox.Wrote is to be called when
// Written has changed.
type Link interface {
	// Append has whole packets appended to what is to be written, and does not call
	// back. mark is how many bytes were appended since the connection's beginning.
	// ok is false where it has ended, and nothing is appended.
	Append(f func(dst []byte) []byte) (mark uint64, ok bool)
	// Flush has written what was appended. It is called without a lock.
	Flush()
	// Written is how many bytes the operating system has taken. Once the
	// connection is down it does not change.
	Written() uint64
	// Waiting is how many bytes it has not taken yet.
	Waiting() int
}

// Server is what the server has said when a connection began.
type Server struct {
	Present        bool // the session is resumed
	ReceiveMaximum int  // messages of QoS 1 and 2 it takes at a time; 0 = 65535
	MaximumQoS     byte
	NoRetain       bool
	MaxPacket      int // bytes; 0 = no limit
}

// Post is one message to publish.
type Post struct {
	// Message has passed message.Check. Its bytes stay as they are until Done.
	Message core.Message
	QoS     byte
	Retain  bool
	// ContentType beats the message's header, nil = the header's.
	ContentType []byte
	// Deadline is when the message expires, in milliseconds since 1970; 0 = never.
	Deadline int64
	// Copy says that it is a copy or a dead letter.
	Copy bool
	// Carry is the delivery that a copy stems from, where Carried.
	Carry   carry.Carry
	Carried bool
	// Done takes the receipt, once, with I. No lock is held.
	Done func(i int, r pluginapi.Receipt)
	I    int
}

// Outbox sends messages in the order they are added. It may be used from any
// goroutine.
type Outbox struct {
	c      Config
	append func(dst []byte) []byte // batch, as a value

	mu        sync.Mutex
	link      Link // nil = down
	broken    bool // link has ended, and Down is to come
	gave      bool // it was given something, and is to be flushed
	server    Server
	quota     int  // messages of QoS 1 and 2 that may wait for an answer
	inflight  int  // of the link
	begun     bool // there was a connection
	strays    int  // PUBRECs of the link that nothing waited for
	scrubbing bool // of ids, over this link

	queue    list   // before the answer to PUBLISH, in order
	next     *entry // the first that the link was not given
	released list   // between PUBREC and PUBCOMP, in the order of PUBREC [MQTT-4.6.0-4]
	unproved list   // of QoS 0 that the link was given, by how far it has written
	count    int    // entries in use
	bytes    int64  // of their packets
	ids      ids
	free     *entry

	control []byte // acks to be written before anything else
	batch   []*entry

	answers []answer // to be given once mu is free
	spares  [][]answer
	giving  int // goroutines that give receipts

	since   time.Time // the link is down
	timer   *time.Timer
	alarm   uint64         // the timer's number
	timers  sync.WaitGroup // timers that are set or run
	closed  bool
	failed  *core.Fault // the endpoint has ended
	suspect suspect
	idle    chan struct{}
	expired notice
}

// New returns an outbox without a connection.
func New(c Config) *Outbox {
	if c.Window <= 0 {
		c.Window = defaultWindow
	}
	c.Window = min(c.Window, MaxID)
	if c.MaxPacket <= 0 {
		c.MaxPacket = packet.MaxSize
	}
	if c.Wait <= 0 {
		c.Wait = defaultWait
	}
	if c.Returns == nil {
		c.Returns = func(*carry.Carry) bool { return false }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	o := &Outbox{c: c, since: time.Now()}
	o.append = o.appendBatch
	o.ids.init(c.Window, min(max(c.FirstID, 1), MaxID+1-c.Window))
	return o
}

// Add takes a message, which the next Flush sends. It does not block. Where it
// returns a fault the message is refused and Done is not called.
func (o *Outbox) Add(p *Post) *core.Fault {
	params := message.Params{QoS: p.QoS, HasExpiry: p.Deadline != 0, ContentType: p.ContentType, Retain: p.Retain}
	size := message.Size(&p.Message, &params)
	if size > o.c.MaxPacket {
		return tooLarge(p.Message.Name, size, o.c.MaxPacket, "max_packet_size")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.refuses(p, size); f != nil {
		return f
	}
	e := o.take()
	e.post, e.size = *p, size
	if o.link == nil {
		e.since = time.Now()
		o.arm(e.since.Add(o.c.Wait))
	}
	o.queue.push(e)
	if o.next == nil {
		o.next = e
	}
	o.count++
	o.bytes += int64(size)
	return nil
}

// refuses says why nothing is taken now; o.mu is held.
func (o *Outbox) refuses(p *Post, size int) *core.Fault {
	name := p.Message.Name
	switch {
	case o.failed != nil:
		return because(fault.PublishTo(name), o.failed)
	case o.closed:
		return fault.Closed(fault.PublishTo(name))
	case o.count >= maxMessages || o.bytes+int64(size) > maxBytes && o.count > 0:
		return fault.Passing(core.FaultExhausted, "publish fewer at a time", "%s: %d messages have no receipt yet", fault.PublishTo(name), o.count)
	case o.link != nil && p.Carried && o.c.Returns(&p.Carry):
		return returning(name)
	}
	if until := o.suspect.outlaw(p); !until.IsZero() {
		return spurned(name, until)
	}
	return nil
}

// Flush sends what was added, as much as there is room for, and gives the
// receipts that are due.
func (o *Outbox) Flush() {
	o.mu.Lock()
	o.pump()
	o.leave()
}

// leave has written what the link was given, lets go of o.mu, and gives the
// receipts that are due.
func (o *Outbox) leave() {
	for o.gave {
		o.gave = false
		l := o.link
		o.mu.Unlock()
		l.Flush()
		o.mu.Lock()
		if o.link == l {
			o.proved(l.Written())
			o.pump()
		}
	}
	if len(o.answers) == 0 && !o.expired.due() {
		o.rest()
		o.mu.Unlock()
		return
	}
	o.give()
}

// give gives the receipts that are due, and lets go of o.mu for it.
func (o *Outbox) give() {
	answers := o.answers
	o.answers = nil
	if n := len(o.spares); n > 0 {
		o.answers, o.spares = o.spares[n-1], o.spares[:n-1]
	}
	expired := o.expired.take(false)
	o.giving++
	o.mu.Unlock()
	for i := range answers {
		answers[i].give()
	}
	o.tellExpired(expired)
	clear(answers)
	o.mu.Lock()
	o.giving--
	if len(o.spares) < maxSpares {
		o.spares = append(o.spares, answers[:0])
	}
	o.rest()
	o.mu.Unlock()
}

// maxSpares is how many lists of receipts are kept for the next ones.
const maxSpares = 4

// rest tells who waits for it that every receipt is given; o.mu is held.
func (o *Outbox) rest() {
	if o.idle != nil && o.count == 0 && o.giving == 0 && len(o.answers) == 0 {
		close(o.idle)
		o.idle = nil
	}
}
