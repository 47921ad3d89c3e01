// SPDX-License-Identifier: Apache-2.0

package client

import (
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// read takes what the broker sends until the connection ends.
func (c *Conn) read() error {
	var d wire.Delivery
	for {
		f, err := c.reader.Next()
		if err != nil {
			return lost(err)
		}
		switch f.Type {
		case wire.TypeMessage:
			err = c.entry(&d, &f)
		case wire.TypeSendReceipt:
			err = c.receipt(&f)
		default:
			err = c.command(&f)
		}
		if err != nil {
			return err
		}
		if f = (wire.Frame{}); !c.reader.Buffered() {
			c.pause()
		}
	}
}

// entry passes on a MESSAGE. One for nobody is dropped: its consumer has just left, and
// the broker keeps what it has not acked.
func (c *Conn) entry(d *wire.Delivery, f *wire.Frame) error {
	if err := f.Delivery(d); err != nil {
		return err
	}
	c.mu.Lock()
	s := c.consumers[d.Consumer]
	c.mu.Unlock()
	if s == nil {
		d.Payload = nil
		return nil
	}
	if !s.told {
		s.told = true
		c.pausing.consumers = append(c.pausing.consumers, s)
	}
	s.handler.Entry(d)
	d.Payload = nil // it is not to be kept until the next comes
	return nil
}

func (c *Conn) receipt(f *wire.Frame) error {
	r, err := f.Receipt()
	if err != nil {
		return err
	}
	if s := c.producer(r.Producer); s != nil {
		s.handler.Receipt(r)
	}
	return nil
}

// producer is where a producer is registered that is about to be told something, nil =
// it is not any more.
func (c *Conn) producer(id uint64) *seat[ProducerHandler] {
	c.mu.Lock()
	s := c.producers[id]
	c.mu.Unlock()
	if s != nil && !s.told {
		s.told = true
		c.pausing.producers = append(c.pausing.producers, s)
	}
	return s
}

// pause tells all to whom something was passed on that nothing more has come.
func (c *Conn) pause() {
	for i, s := range c.pausing.consumers {
		if s.told = false; !s.free.Load() {
			s.handler.Pause()
		}
		c.pausing.consumers[i] = nil
	}
	for i, s := range c.pausing.producers {
		if s.told = false; !s.free.Load() {
			s.handler.Pause()
		}
		c.pausing.producers[i] = nil
	}
	c.pausing.consumers, c.pausing.producers = c.pausing.consumers[:0], c.pausing.producers[:0]
}

// command acts on any other command. What is of no concern here is passed over.
func (c *Conn) command(f *wire.Frame) error {
	m, err := f.Parse()
	if err != nil {
		return err
	}
	switch m.Type {
	case wire.TypePing:
		c.once(answerPing, wire.AppendPong)
	case wire.TypeAuthChallenge:
		return c.introduce()
	case wire.TypeSendError:
		if s := c.producer(m.Producer); s != nil {
			s.handler.Failed(m.Sequence, m.Code, m.Message)
		}
	case wire.TypeCloseProducer:
		if s := c.forgetProducer(m.Producer); s != nil {
			s.handler.Closed()
		}
	case wire.TypeCloseConsumer:
		if s := c.forgetConsumer(m.Consumer); s != nil {
			s.handler.Closed()
		}
	case wire.TypeActiveConsumer:
		c.mu.Lock()
		s := c.consumers[m.Consumer]
		c.mu.Unlock()
		if s != nil {
			s.handler.Active(m.Active)
		}
	default:
		return c.answer(&m)
	}
	return nil
}

// introduce answers a broker that asks for credentials again.
func (c *Conn) introduce() error {
	c.client.config.Log.Debug("Pulsar broker asks for credentials again", "host", c.host)
	auth, err := c.client.config.auth()
	if err != nil {
		return err
	}
	c.once(answerChallenge, func(dst []byte) []byte { return wire.AppendAuthResponse(dst, software, auth) })
	return nil
}
