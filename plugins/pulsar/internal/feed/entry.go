// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"errors"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Entry takes what the broker sends: it is added to the batch that is being built.
func (m *member) Entry(d *wire.Delivery) {
	f := m.p.feed
	b := m.building
	if b == nil {
		b = f.spare.take()
		b.Partition, b.Epoch, b.from = m.p, m.epoch, m
		m.building = b
	}
	before := len(b.Messages)
	messages, err := d.Messages(b.Messages)
	permits := permitsOf(d, err, f.ReceiverQueue)
	if err != nil {
		clear(messages[before:])
		messages = messages[:before]
		m.unread(d, err)
	}
	b.Messages = messages
	if len(messages) == before {
		m.give(permits) // nobody takes them
		return
	}
	b.permits += permits
	b.bytes += d.Kept
	if len(messages) >= places(f.ReceiverQueue, 1, batchMessages) || b.bytes >= batchBytes {
		m.Pause()
	}
}

// Pause passes on what was gathered.
func (m *member) Pause() {
	if b := m.building; b != nil && len(b.Messages) > 0 {
		permits, bytes := b.permits, b.bytes
		m.building = nil
		m.hold(b)
		m.pass(b)
		m.flow(m.pace.arrived(permits, bytes, m.p.feed.share()))
	}
}

// permitsOf is how many permits the broker has taken for an entry: one for each message
// that is not acked. What is broken is not believed to have more than a receiver queue.
func permitsOf(d *wire.Delivery, err error, queue int) int {
	if d.Left == nil {
		n := max(d.Count, 1)
		if isChecksum(err) {
			n = min(n, max(queue, 1))
		}
		return n
	}
	n := 0
	for _, word := range d.Left {
		n += bits.OnesCount64(word)
	}
	return n
}

// unread takes note of an entry that cannot be read. It stays in the backlog, for others
// who can, or until it is acked or expires by other means. One that may have been broken
// on its way is asked for once more, where a single one can be.
func (m *member) unread(d *wire.Delivery, err error) {
	f := m.p.feed
	if isChecksum(err) && d.Redelivered == 0 && f.Type.Counts() {
		m.p.log().Debug("Pulsar message is broken, and asked for again", "position", m.p.at(d.Ledger, d.Entry))
		m.nack([]wire.MessageID{{Ledger: d.Ledger, Entry: d.Entry, Batch: wire.NoBatch}})
		return
	}
	m.p.unread.add(m.p.log(), m.p.at(d.Ledger, d.Entry), err)
}

// isChecksum reports whether an entry has been broken on its way.
func isChecksum(err error) bool {
	e, ok := errors.AsType[*wire.EntryError](err)
	return ok && e.Kind == wire.EntryChecksum
}

// at is the id of an entry of the partition.
func (p *Partition) at(ledger, entry int64) string {
	return topic.ID{Ledger: ledger, Entry: entry, Partition: int32(p.Topic.Partition), Batch: topic.NoBatch}.String() //nolint:gosec // partitions are few
}

// unreadEvery is how often entries of one partition that cannot be read are warned of.
const unreadEvery = time.Minute

// unread are the entries of a partition that could not be read. The first is warned of,
// and at most once in unreadEvery how many others there were, with the last of them.
type unread struct {
	mu    sync.Mutex
	said  time.Time
	count int // since then
	at    string
	err   error
}

// add takes one.
func (u *unread) add(log *slog.Logger, at string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	u.at, u.err = at, err
	u.say(log)
}

// flush says what is to be said.
func (u *unread) flush(log *slog.Logger) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.say(log)
}

// say warns, where it is time. u.mu is held.
func (u *unread) say(log *slog.Logger) {
	if u.count == 0 || time.Since(u.said) < unreadEvery {
		return
	}
	log.Warn("Pulsar message cannot be read, and stays in the backlog", "position", u.at, "messages", u.count, "error", u.err)
	u.said, u.count = time.Now(), 0
}
