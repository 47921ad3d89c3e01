// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/peer"
)

// writeSize is what a feeder writes at a time, readSize what a sink reads.
const (
	writeSize = 32 << 10
	readSize  = 128 << 10
)

// dial connects to the server without a library's client.
func (c *client) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	hello := packets.NewControlPacket(packets.CONNECT)
	connect, _ := hello.Content.(*packets.Connect)
	connect.ClientID, connect.CleanStart = c.id, true
	if _, err := hello.WriteTo(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	answer, err := packets.ReadPacket(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if ack, ok := answer.Content.(*packets.Connack); !ok || ack.ReasonCode != 0 {
		return nil, errors.Join(fmt.Errorf("the server answers %v", answer), conn.Close())
	}
	return conn, nil
}

// ready is a message as packets: a PUBLISH, and behind it at QoS 2 the PUBREL,
// which Mosquitto takes without having been waited for. Acks are of no use to a
// feeder, which never sends anything again.
type ready struct {
	b   []byte
	ids []int // where packet ids lie
	at  int   // where the payload does
}

// pack makes a message ready.
func (c *client) pack(m *core.Message) (r ready, err error) {
	p := packets.NewControlPacket(packets.PUBLISH)
	publish, _ := p.Content.(*packets.Publish)
	publish.Topic, publish.Payload, publish.QoS = m.Name, m.Payload, c.qos
	for _, h := range m.Headers {
		if h.Name == "content-type" {
			publish.Properties.ContentType = string(h.Value)
			continue
		}
		publish.Properties.User = append(publish.Properties.User, packets.User{Key: h.Name, Value: string(h.Value)})
	}
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		return r, err
	}
	r.b = b.Bytes()
	r.at = len(r.b) - len(m.Payload)
	if c.qos > 0 {
		r.ids = append(r.ids, bytes.Index(r.b, []byte(m.Name))+len(m.Name))
	}
	if c.qos == 2 {
		r.ids = append(r.ids, len(r.b)+2)
		r.b = append(r.b, packets.PUBREL<<4|2, 2, 0, 0)
	}
	return r, nil
}

// appendTo appends the packets with a packet id.
func (r *ready) appendTo(b []byte, id uint16, stamped bool) []byte {
	start := len(b)
	b = append(b, r.b...)
	for _, at := range r.ids {
		binary.BigEndian.PutUint16(b[start+at:], id)
	}
	if stamped {
		peer.Stamp(b[start+r.at:])
	}
	return b
}

// feed publishes as fast as the server takes it.
func (c *client) feed(ctx context.Context, connected func(), orders <-chan order) error {
	var packed []ready
	for i := range c.messages {
		r, err := c.pack(&c.messages[i])
		if err != nil {
			return err
		}
		packed = append(packed, r)
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is left to be read or written
	failed := make(chan error, 1)
	go func() { // acks
		_, err := io.Copy(io.Discard, conn)
		failed <- errors.Join(errors.New("the server has closed the connection"), err)
	}()
	connected()
	id := uint16(0)
	for {
		select {
		case err := <-failed:
			return err
		case o := <-orders:
			if id, err = c.write(conn, packed, o, id); err != nil {
				return err
			}
		}
	}
}

// write writes what an order asks for and returns the last packet id.
func (c *client) write(conn net.Conn, packed []ready, o order, id uint16) (uint16, error) {
	var ticks <-chan time.Time
	if o.every > 0 {
		t := time.NewTicker(o.every)
		defer t.Stop()
		ticks = t.C
	}
	b, in := make([]byte, 0, writeSize), 0
	for i := range o.messages {
		if ticks != nil {
			<-ticks
		}
		if id++; id == 0 {
			id = 1
		}
		b = packed[i%len(packed)].appendTo(b, id, ticks != nil)
		if in++; len(b) < writeSize && ticks == nil && i < o.messages-1 {
			continue
		}
		if _, err := conn.Write(b); err != nil {
			return id, err
		}
		c.sent.Add(uint64(in))
		b, in = b[:0], 0
	}
	return id, nil
}

// sink counts what comes, at QoS 0 whatever it was published at.
func (c *client) sink(ctx context.Context, connected func(), _ <-chan order) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is left to be read or written
	hello := packets.NewControlPacket(packets.SUBSCRIBE)
	subscribe, _ := hello.Content.(*packets.Subscribe)
	subscribe.PacketID = 1
	subscribe.Subscriptions = []packets.SubOptions{{Topic: c.messages[0].Name}}
	if _, err := hello.WriteTo(conn); err != nil {
		return err
	}
	if answer, err := packets.ReadPacket(conn); err != nil || answer.Type != packets.SUBACK {
		return errors.Join(fmt.Errorf("the server answers %v", answer), err)
	}
	connected()
	in := bufio.NewReaderSize(conn, readSize)
	for {
		if _, err := in.ReadByte(); err != nil {
			return err
		}
		length, err := binary.ReadUvarint(in) // MQTT's lengths are such, of at most four bytes
		if err != nil {
			return err
		}
		if _, err := in.Discard(int(length)); err != nil {
			return err
		}
		c.arrived.Add(1, nil)
	}
}
