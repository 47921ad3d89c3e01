// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// of is the address of a URL, and its user.
func of(t *testing.T, url string) (Address, Credentials) {
	t.Helper()
	a, c, err := ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	return a, c
}

// subscribes has a handler subscribe to a filter at QoS 1 whenever a link comes up.
func (r *recorder) subscribes(t *testing.T, filter string) {
	r.onUp = func(l *Link) {
		if l.Present() {
			return
		}
		l.Write(func(b []byte) []byte {
			b, err := packet.AppendSubscribe(b, 1, 0, []packet.Subscription{{Filter: filter, QoS: 1}})
			if err != nil {
				t.Error(err)
			}
			return b
		})
	}
	r.onPack = func(l *Link, p *packet.Packet) {
		var pub packet.Publish
		if p.Type != packet.TypePublish {
			return
		}
		if err := packet.ParsePublish(p, &pub); err != nil {
			t.Error(err)
		}
		if pub.QoS == 1 {
			l.Write(func(b []byte) []byte { return packet.AppendAck(b, packet.TypePuback, pub.ID, 0) })
		}
	}
}

// payload waits for the next PUBLISH, and returns its payload.
func (r *recorder) payload(t *testing.T) string {
	t.Helper()
	for {
		q := within(t, "a message", r.packets)
		if q.typ != packet.TypePublish {
			continue
		}
		var pub packet.Publish
		if err := packet.ParsePublish(&packet.Packet{Type: q.typ, Flags: 2, Body: []byte(q.body)}, &pub); err != nil {
			t.Fatal(err)
		}
		return string(pub.Payload)
	}
}

// M-05 against a server with users and a list of who may what: the reason in words
// with the first answer, no further connects, and no password anywhere.
func TestM05WrongPassword(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{Users: map[string]string{"ann": "hunter2"}})
	for name, c := range map[string]struct{ user, password string }{
		"wrong password": {"ann", "hunter3"},
		"unknown user":   {"bob", "hunter3"},
		"no user":        {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := proxy.Start(t, b.Address())
			a, _ := of(t, "mqtt://"+p.Address())
			params := packet.ConnectParams{Username: c.user}
			if c.password != "" {
				params.Password = []byte(c.password)
			}
			s := subjectOf(t, Config{Address: a, Connect: params})
			err := within(t, "the start", s.start(t))
			faultWith(t, err, core.FaultDenied, "not authorized (0x87)", "username", "subject", a.String())
			if n := p.Accepted(); n != 1 {
				t.Errorf("%d connections", n)
			}
			if text := fmt.Sprintf("%v %+v", err, err) + s.log.String(); strings.Contains(text, "hunter") {
				t.Errorf("the password is shown: %s", text)
			}
		})
	}
	t.Run("the right one", func(t *testing.T) {
		a, c := of(t, strings.Replace(b.URL(), "mqtt://", "mqtt://ann:hunter2@", 1))
		s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{Username: c.Username, Password: []byte(c.Password.Reveal())}})
		if err := within(t, "the start", s.start(t)); err != nil {
			t.Fatal(err)
		}
		s.mustClose(t)
		if strings.Contains(s.log.String(), "hunter2") {
			t.Errorf("the password is shown: %s", s.log)
		}
	})
}

// Taken over where the server closes without a word, as Mosquitto does: what goes on is
// said, and not with every connection.
func TestTakenOverWithoutAWord(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	a, _ := of(t, b.URL())
	first, second := subjectOf(t, Config{Address: a}), subjectOf(t, Config{Address: a})
	for _, s := range []*subject{first, second} {
		if err := within(t, "the start", s.start(t)); err != nil {
			t.Fatal(err)
		}
	}
	const question = "is another client connected under this client_id?"
	began := time.Now()
	for n := 0; n < 20 || !strings.Contains(first.log.String(), question); n++ {
		within(t, "the end of a link", first.downs)
	}
	text := first.log.String()
	most := 1 + int(time.Since(began)/noticeEvery)
	if n := strings.Count(text, question); n > most || !strings.Contains(text, "client_id=subject") {
		t.Errorf("%d lines: %s", n, text)
	}
	if n := strings.Count(text, "level=WARN"); n > 6*most {
		t.Errorf("%d warnings of 20 links:\n%s", n, text)
	}
}

// M-04: the log says of each restart whether the session was lost or resumed, and the
// handler is told.
func TestM04Restarts(t *testing.T) {
	for persistent, word := range map[bool]string{false: "level=WARN msg=\"MQTT connected again: session lost, and", true: "level=INFO msg=\"MQTT connected again: session resumed"} {
		t.Run(word, func(t *testing.T) {
			b := mosquitto.Start(t, mosquitto.Config{Persistent: persistent})
			a, _ := of(t, b.URL())
			s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{SessionExpiry: 300}})
			s.subscribes(t, "a/#")
			if err := within(t, "the start", s.start(t)); err != nil {
				t.Fatal(err)
			}
			within(t, "the link", s.ups)
			if q := within(t, "the SUBACK", s.packets); q.typ != packet.TypeSuback {
				t.Errorf("%v", q)
			}
			for i := range 3 {
				b.Stop()
				within(t, "its end", s.downs)
				b.Start()
				if l := within(t, "the next link", s.ups); l.Present() != persistent || l.Number() != uint64(i+2) {
					t.Errorf("link %d, session present %v", l.Number(), l.Present())
				}
				b.Publish(mosquitto.Message{Topic: "a/b", Payload: []byte{byte('0' + i)}, QoS: 1})
				if got, want := s.payload(t), string(rune('0'+i)); got != want {
					t.Errorf("%s arrives, want %s", got, want)
				}
				b.Await(1, "Received PUBACK from subject") // or it would come again
			}
			if n := strings.Count(s.log.String(), word); n != 3 {
				t.Errorf("%q %d times:\n%s", word, n, s.log)
			}
			if n := strings.Count(s.log.String(), "level=DEBUG msg=\"MQTT connection lost\" "); n != 3 {
				t.Errorf("lost %d times:\n%s", n, s.log)
			}
		})
	}
}

// The will is published where a client is gone, and not where it has taken its
// leave.
func TestWill(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	sub := b.Subscribe(1, []string{"#"})
	will := &packet.Will{Topic: "gone/{subject}", Payload: []byte("bye"), QoS: 1, ContentType: "text/plain"}
	p := proxy.Start(t, b.Address())
	a, _ := of(t, "mqtt://"+p.Address())
	s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{CleanStart: true, Will: will}})
	if err := within(t, "the start", s.start(t)); err != nil {
		t.Fatal(err)
	}
	within(t, "the link", s.ups)
	p.Cut()
	if got := sub.Messages(1)[0]; got.Topic != will.Topic || string(got.Payload) != "bye" || got.ContentType != "text/plain" {
		t.Errorf("the will is %v", got)
	}
	within(t, "the next link", s.ups)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.CloseWithWill(ctx); err != nil {
		t.Error(err)
	}
	if got := sub.Messages(1)[0]; got.Topic != will.Topic {
		t.Errorf("an end that nobody has asked for: %v", got)
	}
	s = subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{CleanStart: true, Will: will}})
	if err := within(t, "the start", s.start(t)); err != nil {
		t.Fatal(err)
	}
	s.mustClose(t)
	b.Publish(mosquitto.Message{Topic: "last", Payload: []byte("x"), QoS: 1})
	if got := sub.Got(1); strings.Contains(fmt.Sprint(got), "gone") {
		t.Errorf("behind Close: %v", got)
	}
}

// A server that reads the CONNECT late finds a DISCONNECT behind it: the will is
// published only where Close has asked for it.
func TestWillOfAnAttempt(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	sub := b.Subscribe(1, []string{"#"})
	for name, closed := range map[string]func(*Client, context.Context) error{"without": (*Client).Close, "with": (*Client).CloseWithWill} {
		p := proxy.Start(t, b.Address())
		p.Stall(proxy.ToClient)
		target, _ := of(t, "mqtt://"+p.Address())
		s := subjectOf(t, Config{Address: target, Connect: packet.ConnectParams{
			ClientID: name, CleanStart: true, Will: &packet.Will{Topic: "gone", Payload: []byte(name), QoS: 1},
		}})
		started := s.start(t)
		p.Await(proxy.ToServer, proxy.Connect, 1)
		if err := closed(s.Client, t.Context()); err != nil {
			t.Error(err)
		}
		if err := within(t, "the start", started); !errors.Is(err, ErrClosed) {
			t.Errorf("the start ends with %v", err)
		}
		b.Await(1, "Received DISCONNECT from "+name)
	}
	b.Publish(mosquitto.Message{Topic: "last", Payload: []byte("x"), QoS: 1})
	if got := sub.Got(2); !slices.Equal(got, []string{"gone with", "last x"}) {
		t.Errorf("the wills are %q", got)
	}
}

// What Close has written is there: the DISCONNECT does not overtake or lose it.
func TestCloseLosesNothing(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	sub := b.Subscribe(0, []string{"n"})
	a, _ := of(t, b.URL())
	for round := range 5 {
		s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{CleanStart: true}})
		if err := within(t, "the start", s.start(t)); err != nil {
			t.Fatal(err)
		}
		l := within(t, "the link", s.ups)
		const n = 2000
		for i := range n {
			l.Write(func(b []byte) []byte { return append(b, 0x30, 8, 0, 1, 'n', 0, byte(round), byte(i>>8), byte(i), '.') })
		}
		s.mustClose(t)
		for i, m := range sub.Messages(n) {
			if want := []byte{byte(round), byte(i >> 8), byte(i), '.'}; !bytes.Equal(m.Payload, want) {
				t.Fatalf("round %d: message %d is %v", round, i, m.Payload)
			}
		}
	}
	if w := b.Lines("not properly"); len(w) > 0 { // what it says of a client that is gone
		t.Errorf("%v", w)
	}
}

// Mosquitto's own keep alive beats ours where it is lower; the link stays for longer
// than that.
func TestServersKeepAlive(t *testing.T) {
	t.Parallel() // it waits for the server's least time
	b := mosquitto.Start(t, mosquitto.Config{Lines: []string{"max_keepalive 10"}})
	p := proxy.Start(t, b.Address())
	a, _ := of(t, "mqtt://"+p.Address())
	s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{KeepAlive: 600}})
	if err := within(t, "the start", s.start(t)); err != nil {
		t.Fatal(err)
	}
	if got := within(t, "the link", s.ups).Server().KeepAlive; got != 10 {
		t.Errorf("keep alive %d", got)
	}
	p.Await(proxy.ToServer, proxy.Pingreq, 1)
	p.Await(proxy.ToClient, proxy.Pingresp, 1)
	if len(s.downs) > 0 {
		t.Error(<-s.downs)
	}
}

// Links that are half open or stalled are found out and made anew. The keep alive is
// long enough for a machine that stands still while the link comes up.
func TestHalfOpenAndStalled(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	for name, disturb := range map[string]func(p *proxy.Proxy){
		"half open": (*proxy.Proxy).HalfOpen,
		"stalled":   func(p *proxy.Proxy) { p.Stall() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := proxy.Start(t, b.Address())
			a, _ := of(t, "mqtt://"+p.Address())
			s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{ClientID: name, KeepAlive: 6}}, func(c *Client) { c.times.answer = time.Second })
			if err := within(t, "the start", s.start(t)); err != nil {
				t.Fatal(err)
			}
			within(t, "the link", s.ups)
			disturb(p)
			if err := within(t, "its end", s.downs); !strings.Contains(err.Error(), "no answer to a ping") {
				t.Errorf("it ends by %v", err)
			}
			p.Resume()
			within(t, "the next link", s.ups)
		})
	}
}

// M-13: a message beyond the limit is not sent to us, what is within it
// comes, on the same link.
func TestM13LargeMessages(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	a, _ := of(t, b.URL())
	s := subjectOf(t, Config{Address: a, Connect: packet.ConnectParams{MaxPacket: 1 << 20}})
	s.subscribes(t, "big")
	if err := within(t, "the start", s.start(t)); err != nil {
		t.Fatal(err)
	}
	b.Publish(mosquitto.Message{Topic: "big", Payload: bytes.Repeat([]byte("x"), 2<<20), QoS: 1},
		mosquitto.Message{Topic: "big", Payload: []byte("small"), QoS: 1},
		mosquitto.Message{Topic: "big", Payload: bytes.Repeat([]byte("y"), 1<<20-100), QoS: 1})
	if got := s.payload(t); got != "small" {
		t.Errorf("%d bytes arrive", len(got))
	}
	if got := s.payload(t); len(got) != 1<<20-100 {
		t.Errorf("%d bytes arrive", len(got))
	}
	if len(s.downs) > 0 {
		t.Error(<-s.downs)
	}
}

// Mosquitto with certificates: ours is asked for, and its port is no plain one.
func TestMosquittoTLS(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{TLS: true, ClientCertificates: true})
	a, _ := of(t, b.URL())
	cert, key := b.Certificate()
	load := func(f TLSFiles) *tls.Config {
		c, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := subjectOf(t, Config{Address: a, TLS: load(TLSFiles{CA: b.CA(), Cert: cert, Key: key})})
	s.subscribes(t, "t")
	if err := within(t, "the start", s.start(t)); err != nil {
		t.Fatal(err)
	}
	b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("over TLS"), QoS: 1})
	if got := s.payload(t); got != "over TLS" {
		t.Error(got)
	}
	s.mustClose(t)

	s = subjectOf(t, Config{Address: a, TLS: load(TLSFiles{CA: b.CA()})})
	faultWith(t, within(t, "the start", s.start(t)), core.FaultDenied, "tls_cert", "certificate required")
	s = subjectOf(t, Config{Address: a})
	faultWith(t, within(t, "the start", s.start(t)), core.FaultDenied, "tls_ca")

	a.TLS = false
	s = subjectOf(t, Config{Address: a})
	faultWith(t, s.fails(t), core.FaultUnavailable, "mqtts://")
}
