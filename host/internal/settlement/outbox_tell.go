// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/internal/frame"
)

// begun notes when p was handed over, for those who want to know how long it
// took.
func (b *Outbox) begun(p *publish) {
	if b.o.Answered != nil {
		p.handed = time.Since(b.born)
	}
}

// tell gives a publish its receipt. No lock is held.
func (b *Outbox) tell(p *publish, r frame.Receipt) {
	if b.o.Answered != nil {
		b.o.Answered(&p.out, r, time.Since(b.born)-p.handed)
	}
	p.to.receive(p.token, r)
}

// answer is a receipt with its publish.
type answer struct {
	p *publish
	r frame.Receipt
}

// tellAll gives publishes their receipts.
func (b *Outbox) tellAll(done []answer) {
	for i := range done {
		b.tell(done[i].p, done[i].r)
		done[i] = answer{}
	}
}
