// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// client is a connection to a broker without anything around it.
type client struct {
	t  *testing.T
	nc net.Conn
	r  *packet.Reader
}

// connect opens a connection and does the handshake.
func connect(t *testing.T, b *mosquitto.Broker, id string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(2 * time.Minute)) // of all that it does
	c := &client{t: t, nc: nc, r: packet.NewReader(nc, 0)}
	c.write(packet.AppendConnect(nil, &packet.ConnectParams{ClientID: id, CleanStart: true, KeepAlive: 60}))
	if got, err := packet.ParseConnack(c.next()); err != nil || got.Code != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	return c
}

func (c *client) write(b []byte, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next packet, or why there is none.
func (c *client) read() (*packet.Packet, error) {
	var p packet.Packet
	for {
		ok, err := c.r.Next(&p)
		if ok || err != nil {
			return &p, err
		}
		if err := c.r.Fill(); err != nil {
			return nil, err
		}
	}
}

func (c *client) next() *packet.Packet {
	c.t.Helper()
	p, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// A broker takes whatever Check takes, brings it back as it was, and says by its
// identifier which subscription it is for.
func TestMosquittoTakesWhatCheckTakes(t *testing.T) {
	c := connect(t, mosquitto.Start(t, mosquitto.Config{}), "round")
	id := topic.Identifier("t/#")
	c.write(packet.AppendSubscribe(nil, 1, id, []packet.Subscription{{Filter: "t/#", QoS: 2}}))
	if got, err := packet.ParseSuback(c.next()); err != nil || got.Codes[0] != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, m := range map[string]core.Message{
		"nothing":            {Name: "t"},
		"empty level":        {Name: "t//", Payload: []byte("p")},
		"any script":         {Name: "t/größe/日本", Headers: headers("größe", "日本 🚢")},
		"empty strings":      {Name: "t/a", Headers: headers("", "", "a", "", "", "b")},
		"empty content type": {Name: "t/a", Headers: headers("content-type", "")},
		"empty correlation":  {Name: "t/a", Headers: headers("correlation-id", "")},
		"every byte":         {Name: "t/a", Headers: headers("correlation-id", "\x00\n\xff\x80"), Payload: []byte("\x00\xff")},
		"all in order":       {Name: "t/a", Headers: headers("a", "1", "correlation-id", "c", "A", "2", "content-type", "text/plain", "a", "1", "reply-to", "r/1", "z", "é")},
		"text that is none":  {Name: "t/a", Headers: headers("content-type", "text/plain"), Payload: []byte("\xff")},
		"the longest":        {Name: "t/a", Headers: headers(strings.Repeat("n", packet.MaxString), strings.Repeat("v", packet.MaxString))},
		"many":               {Name: "t/a", Headers: headers(strings.Split(strings.Repeat("n v ", 5000), " ")[:10_000]...)},
		"no-break blanks":    {Name: "t/ \u00a0", Headers: headers("\u00a0 ", "\ufeff")},
	} {
		t.Run(name, func(t *testing.T) {
			if f := message.Check(&m); f != nil {
				t.Fatal(f)
			}
			c.write(message.Append(nil, &m, &message.Params{QoS: 1, ID: 7, Expiry: 600, HasExpiry: true}), nil)
			for acked, came := false, false; !acked || !came; {
				p := c.next()
				if p.Type == packet.TypePuback {
					var a packet.Ack
					if err := packet.ParseAck(p, &a); err != nil || a.ID != 7 || a.Code != 0 {
						t.Errorf("%+v, %v", a, err)
					}
					acked = true
					continue
				}
				var in packet.Publish
				if err := packet.ParsePublish(p, &in); err != nil {
					t.Fatal(err)
				}
				c.write(packet.AppendAck(nil, packet.TypePuback, in.ID, 0), nil)
				if ids := in.Identifiers(nil); len(ids) != 1 || ids[0] != id {
					t.Errorf("identifiers %v, want %d", ids, id)
				}
				if seconds, ok := in.Expiry(); !ok || seconds < 300 || seconds > 600 {
					t.Errorf("expiry %d, %v", seconds, ok)
				}
				var d message.Decoder
				var got core.Message
				if f := d.Decode(&in, &got); f != nil {
					t.Fatal(f)
				}
				if diff := cmp.Diff(m, got, alike); diff != "" {
					t.Error(diff)
				}
				came = true
			}
		})
	}
}

// What Check refuses, a broker ends the connection for: that is why it does.
func TestMosquittoEndsWhatCheckRefuses(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	for name, m := range map[string]core.Message{
		"control character in a value": {Name: "t", Headers: headers("a", "b\tc")},
		"control character in a name":  {Name: "t", Headers: headers("a\n", "b")},
		"C1 control character":         {Name: "t", Headers: headers("a", "\u0085")},
		"non-character":                {Name: "t", Headers: headers("a", "\ufdd0")},
		"null":                         {Name: "t", Headers: headers("a", "\x00")},
		"not UTF-8":                    {Name: "t", Headers: headers("a", "\xff")},
		"content type not UTF-8":       {Name: "t", Headers: headers("content-type", "\xff")},
		"topic with a wildcard":        {Name: "t/#"},
		"topic with a control":         {Name: "t\n"},
		"empty topic":                  {Name: ""},
		"two content types":            {Name: "t", Headers: headers("content-type", "a", "content-type", "b")},
		"two correlations":             {Name: "t", Headers: headers("correlation-id", "a", "correlation-id", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			if message.Check(&m) == nil {
				t.Fatal("Check takes it")
			}
			c := connect(t, b, "bad")
			c.write(message.Append(nil, &m, &message.Params{QoS: 1, ID: 7}), nil)
			p, err := c.read()
			if err == nil && p.Type == packet.TypeDisconnect {
				_, err = packet.ParseDisconnect(p)
				p, _ = c.read()
			}
			if p != nil && p.Type != 0 {
				t.Errorf("%s %x, %v", packet.Name(p.Type), p.Body, err)
			}
		})
	}
}
