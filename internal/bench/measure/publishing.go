// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// openBytes bounds what waits for its receipt, as in a host.
const openBytes = 8 << 20

// publishing publishes messages as fast as receipts come: one goroutine sends,
// one receives.
type publishing struct {
	stream   link.PublishStream
	cancel   context.CancelFunc
	messages []core.Message // that take turns
	stamped  bool           // payloads begin with the time of writing
	pace     *time.Ticker   // one message each; nil = as fast as it goes

	receipts atomic.Uint64
	room     chan int // of messages, as much as came back; closed when no more comes
	stopping chan struct{}
	tasks    sync.WaitGroup
	errs     [2]error // of the sender and the receiver
}

// publish begins to publish with at most open messages without a receipt.
func publish(ctx context.Context, l link.Link, messages []core.Message, open int, change func(*publishing)) (*publishing, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := l.Publish(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	open = max(1, min(open, openBytes/max(1, len(messages[0].Payload))))
	p := &publishing{
		stream: stream, cancel: cancel, messages: messages,
		room: make(chan int, open+1), stopping: make(chan struct{}),
	}
	if change != nil {
		change(p)
	}
	p.room <- open
	p.tasks.Go(func() { p.errs[0] = p.send() })
	p.tasks.Go(func() { p.errs[1] = p.receive() })
	return p, nil
}

// send publishes what there is room for until it is stopped.
func (p *publishing) send() error {
	id, room := uint64(0), 0
	for {
		if p.pace != nil {
			select {
			case <-p.pace.C:
			case <-p.stopping:
				return p.stream.CloseSend()
			}
		}
		for room == 0 {
			select {
			case n, ok := <-p.room:
				if !ok {
					return nil
				}
				room += n
			case <-p.stopping:
				return p.stream.CloseSend()
			}
		}
		for more := true; more; { // what has come back meanwhile
			select {
			case n, ok := <-p.room:
				room, more = room+n, ok
			default:
				more = false
			}
		}
		select {
		case <-p.stopping:
			return p.stream.CloseSend()
		default:
		}
		n := min(room, frame.MaxItems)
		if p.pace != nil {
			n = 1
		}
		f := frame.PublishesOf(n)
		for range n {
			id++
			m := p.messages[id%uint64(len(p.messages))]
			if p.stamped {
				stamp(m.Payload)
			}
			f.Items = append(f.Items, frame.Outgoing{ID: id, Message: m, Purpose: uint8(transportpb.Purpose_PURPOSE_APPLICATION)})
		}
		room -= n
		if err := p.stream.Send(f); err != nil {
			return err
		}
	}
}

// receive counts receipts until the stream ends.
func (p *publishing) receive() error {
	defer close(p.room)
	var rs []frame.Receipt
	for {
		var err error
		if rs, err = p.stream.Recv(rs[:0]); err != nil {
			if ended(err) {
				return nil
			}
			return err
		}
		for i := range rs {
			if rs[i].Status != frame.ReceiptConfirmed {
				return fmt.Errorf("message %d is not published: %w", rs[i].ID, rs[i].Fault)
			}
		}
		p.receipts.Add(uint64(len(rs)))
		p.room <- len(rs)
	}
}

// end stops publishing and waits for the receipts.
func (p *publishing) end() error {
	close(p.stopping)
	t := time.AfterFunc(endLimit, p.cancel)
	p.tasks.Wait()
	t.Stop()
	p.cancel()
	if p.pace != nil {
		p.pace.Stop()
	}
	return errors.Join(p.errs[0], p.errs[1])
}

// publishRate measures publishing on a subject.
func publishRate(ctx context.Context, s *Subject, row FileRow, d time.Duration) (Sample, error) {
	p, err := publish(ctx, s.link, row.options().Messages(), row.Open, nil)
	if err != nil {
		return Sample{}, err
	}
	if err = sleep(ctx, d/4); err != nil {
		return Sample{}, errors.Join(err, p.end())
	}
	sample, err := s.during(ctx, &p.receipts, d)
	return sample, errors.Join(err, p.end())
}

// stamp writes the time into a payload.
func stamp(payload []byte) { binary.LittleEndian.PutUint64(payload, uint64(time.Now().UnixNano())) }

// stampAge is how long ago a payload was stamped.
func stampAge(payload []byte) time.Duration {
	if len(payload) < 8 {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - int64(binary.LittleEndian.Uint64(payload)))
}
