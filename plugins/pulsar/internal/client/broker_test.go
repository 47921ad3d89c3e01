// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// spaces counts namespaces: a test may run several times.
var spaces atomic.Int64

// ns returns the name of a namespace of the test's own, in which role "service" may do
// everything.
func ns(t *testing.T, b *pulsarbroker.Broker) string {
	t.Helper()
	name := fmt.Sprint("public/", strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), "-", spaces.Add(1))
	b.CreateNamespace(name)
	b.Grant(name, "service", "produce", "consume")
	return name
}

func nameOf(t *testing.T, s string) topic.Name {
	t.Helper()
	n, err := topic.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// subscribed is a consumer of one connection.
type subscribed struct {
	consumer
	conn *Conn
	id   uint64
	err  error // the broker's answer
}

// subscribe subscribes a consumer, which may be sent 1000 messages.
func subscribe(t *testing.T, s *subject, name string, of wire.SubscriptionType) *subscribed {
	t.Helper()
	r := &subscribed{consumer: consumer{newHeard(), make(chan wire.Message, 1000)}}
	if r.conn, r.err = s.Broker(t.Context(), name); r.err != nil {
		return r
	}
	r.id = r.conn.Consumer(r)
	_, r.err = r.conn.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, n uint64) []byte {
		return wire.AppendSubscribe(dst, n, wire.Subscribe{ID: r.id, Topic: name, Subscription: "s", Type: of, Create: true})
	})
	r.conn.Send(func(dst []byte) []byte { return wire.AppendFlow(dst, r.id, 1000) })
	return r
}

// leave closes it.
func (r *subscribed) leave(t *testing.T) {
	t.Helper()
	if _, err := r.conn.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, n uint64) []byte { return wire.AppendCloseConsumer(dst, n, r.id) }); err != nil {
		t.Errorf("close a consumer: %v", err)
	}
	r.conn.ForgetConsumer(r.id)
}

// publish sends messages by a producer and waits for their receipts.
func publish(t *testing.T, s *subject, name string, payloads ...string) {
	t.Helper()
	conn, err := s.Broker(t.Context(), name)
	if err != nil {
		t.Fatalf("no broker: %v\n%s", err, s.log)
	}
	p := producer{newHeard()}
	id := conn.Producer(p)
	defer conn.ForgetProducer(id)
	opened, err := conn.Ask(t.Context(), wire.TypeProducerSuccess, func(dst []byte, n uint64) []byte {
		return wire.AppendProducer(dst, n, wire.Producer{ID: id, Topic: name})
	})
	if err != nil {
		t.Fatalf("open a producer: %v", err)
	}
	for i, payload := range payloads {
		conn.Send(func(dst []byte) []byte {
			return wire.AppendSend(dst, &wire.Send{Producer: id, Sequence: uint64(i), Name: opened.Name}, &wire.Outgoing{Payload: []byte(payload)})
		})
	}
	want := make([]string, len(payloads))
	for i := range payloads {
		want[i] = fmt.Sprintf("receipt %d", i)
	}
	var got []string
	for len(got) < len(want) {
		within(t, "a receipt", p.new)
		got = slices.DeleteFunc(p.now(), func(s string) bool { return s == "pause" })
	}
	same(t, "the producer", got, want...)
	if _, err := conn.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, n uint64) []byte { return wire.AppendCloseProducer(dst, n, id) }); err != nil {
		t.Errorf("close a producer: %v", err)
	}
}

// passes sends a message and receives it.
func passes(t *testing.T, s *subject, name, payload string) {
	t.Helper()
	r := subscribe(t, s, name, wire.Shared)
	if r.err != nil {
		t.Fatalf("subscribe: %v\n%s", r.err, s.log)
	}
	defer r.leave(t)
	publish(t, s, name, payload)
	m := within(t, "the message", r.entries)
	if string(m.Payload) != payload {
		t.Fatalf("received %q; want %q", m.Payload, payload)
	}
	if _, err := r.conn.Ask(t.Context(), wire.TypeAckResponse, func(dst []byte, n uint64) []byte {
		return wire.AppendAck(dst, n, r.id, []wire.Acked{{Ledger: m.ID.Ledger, Entry: m.ID.Entry}})
	}); err != nil {
		t.Fatalf("ack: %v", err)
	}
}

// With a token, plain and over TLS: topics and partitions are there for the asking, and
// messages pass.
func TestToken(t *testing.T) {
	t.Parallel()
	b := shared.Broker(t)
	n := ns(t, b)
	b.CreateTopic(n + "/one")
	b.CreatePartitioned(n+"/four", 4)
	for name, url := range map[string]string{"plain": b.PlainURL(), "tls": b.URL()} {
		t.Run(name, func(t *testing.T) {
			s := subjectOf(t, Config{Address: addressOf(t, url), Token: core.NewSecret(b.Token("service")), TLS: TLSFiles{CA: b.CA()}}).connected(t)
			if got := s.MaxMessageSize(); got != 5<<20 {
				t.Errorf("messages may have %d bytes", got)
			}
			got, err := s.Topics(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if want := []topic.Name{nameOf(t, n+"/four"), nameOf(t, n+"/one")}; !cmp.Equal(got, want) {
				t.Errorf("the topics are %v; want %v", got, want)
			}
			for local, want := range map[string]int{"/one": 0, "/four": 4, "/four-partition-2": 4} {
				for _, ask := range []func(context.Context, topic.Name) (int, error){s.Partitions, s.Existing} {
					if got, err := ask(t.Context(), nameOf(t, n+local)); err != nil || got != want {
						t.Errorf("%s has %d partitions, %v; want %d", local, got, err, want)
					}
				}
			}
			passes(t, s, "persistent://"+n+"/one", name)
			if now, _ := s.Up(); !now {
				t.Error("it is not up")
			}
		})
	}
}

// A broker's refusals of requests have their class.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	b := shared.Broker(t)
	n := ns(t, b)
	s := subjectOf(t, Config{Address: addressOf(t, b.PlainURL()), Token: core.NewSecret(b.Token("service"))}).connected(t)
	for name, want := range map[string]core.FaultCode{
		"public/default/not-mine": core.FaultDenied,
		"nobody/nothing/x":        core.FaultNotFound,
	} {
		_, err := s.Partitions(t.Context(), nameOf(t, name))
		if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != want || f.Transient || !strings.HasPrefix(f.Error(), "look up the topic: ") {
			t.Errorf("partitions of %s: %v; want class %d", name, err, want)
		}
		if err = subscribe(t, s, "persistent://"+name, wire.Shared).err; err == nil {
			t.Fatalf("subscribed to %s", name)
		}
		// Where there is no tenant a lookup is refused as one that nobody may do.
		if f := Explain("subscribe to "+name, err); f.Code != core.FaultDenied || f.Transient {
			t.Errorf("%v; want a denied one", f)
		}
	}
	_, err := s.Topics(t.Context(), "public/default")
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultDenied {
		t.Errorf("the topics of a namespace that is not the client's: %v", err)
	}
	_, err = s.Existing(t.Context(), nameOf(t, n+"/missing"))
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultNotFound {
		t.Errorf("a topic that is not there: %v", err)
	}
	if got, err := s.Topics(t.Context(), n); err != nil || len(got) != 0 {
		t.Errorf("looking for a topic has made %v, %v", got, err)
	}
	mine := "persistent://" + n + "/mine"
	first := subscribe(t, s, mine, wire.Exclusive)
	if first.err != nil {
		t.Fatal(first.err)
	}
	for of, fix := range map[wire.SubscriptionType]string{wire.Exclusive: "end the other consumer", wire.Shared: fixType} {
		f := Explain("subscribe", subscribe(t, s, mine, of).err)
		if f.Code != core.FaultConflict || !f.Transient || !strings.Contains(f.Error(), fix) {
			t.Errorf("a second consumer: %v; want %q", f, fix)
		}
	}
	first.leave(t)
}

// Who is not let in is told what to set, at once.
func TestRefusedAtStart(t *testing.T) {
	b := shared.Broker(t)
	ended := b.TokenUntil("service", time.Now().Add(-time.Hour))
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, []byte(ended))
	plain, tls := addressOf(t, b.PlainURL()), addressOf(t, b.URL())
	tlsPort := Address{Hosts: tls.Hosts}
	noTLS := Address{TLS: true, Hosts: plain.Hosts}
	web := Address{Hosts: []string{strings.TrimPrefix(b.WebURL(), "http://")}}
	for name, tt := range map[string]struct {
		c    Config
		code core.FaultCode
		path string
		want string
	}{
		"no token":           {Config{Address: plain}, core.FaultDenied, "token", "AuthenticationError"},
		"no such token":      {Config{Address: plain, Token: core.NewSecret("hush-hush")}, core.FaultDenied, "token", "AuthenticationError"},
		"ended token":        {Config{Address: plain, Token: core.NewSecret(ended)}, core.FaultDenied, "token", "AuthenticationError: Failed to authenticate: token; set a new token: this one has ended at 20"},
		"ended, in a file":   {Config{Address: plain, TokenFile: file}, core.FaultDenied, "token_file", "the one in it has ended at 20"},
		"unknown authority":  {Config{Address: tls, Token: core.NewSecret(b.Token("service"))}, core.FaultDenied, "tls_ca", "unknown authority"},
		"the administration": {Config{Address: web, Token: core.NewSecret(b.Token("service"))}, core.FaultUnsupported, "url", "no Pulsar broker: bad frame: it begins with HTTP"},
		"TLS where there is none": {
			Config{Address: noTLS, TLS: TLSFiles{CA: b.CA()}, ConnectTimeout: 4 * time.Second}, core.FaultUnavailable, "url", "pulsar:// if the port is one without TLS",
		},
		"no TLS where it is": {Config{Address: tlsPort, ConnectTimeout: 4 * time.Second}, core.FaultUnavailable, "url", "pulsar+ssl:// if the port is one for TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subjectOf(t, tt.c)
			f := s.refusedWith(t)
			if f.Code != tt.code || f.Diagnostics[0].Path != tt.path || !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %d: %v; want %d at %s with %q", f.Code, f, tt.code, tt.path, tt.want)
			}
			for _, secret := range []string{"hush", ended, b.Token("service")} {
				if strings.Contains(f.Error()+s.log.String(), secret) {
					t.Errorf("a secret is shown: %v\n%s", f, s.log)
				}
			}
		})
	}
}

// soon is when a token ends with which a test begins: it connects before.
const soon = 10 * time.Second

// A token's file is read when the broker asks for credentials again, on the
// link and on connections to brokers: all stay connected beyond the token's end.
func TestTokenFileRenewed(t *testing.T) {
	t.Parallel()
	b := shared.Broker(t)
	n := ns(t, b)
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, []byte(b.TokenUntil("service", time.Now().Add(soon))+"\r\n"))
	s := subjectOf(t, Config{Address: addressOf(t, b.PlainURL()), TokenFile: file}).connected(t)
	c := subscribe(t, s, "persistent://"+n+"/a", wire.Shared)
	if c.err != nil {
		t.Fatal(c.err)
	}
	next := filepath.Join(t.TempDir(), "next")
	write(t, next, []byte(b.Token("service")))
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the broker asks again on both connections", func() bool {
		return strings.Count(s.log.String(), "Pulsar broker asks for credentials again") > 1
	})
	// The broker cuts who has not answered when it looks again, which is in a second.
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		passes(t, s, "persistent://"+n+"/b", "one")
	}
	if first, second := s.next(t), s.next(t); first.up || !second.up || len(s.changes) != 0 {
		t.Errorf("the states were %v, %v, and %d others; want down and up", first, second, len(s.changes))
	}
	if err := c.conn.Err(); err != nil {
		t.Errorf("the consumer was cut off: %v", err)
	}
}

// A token that has ended is the end of the client where there is no other, and of one
// with a file when that has stayed as it is for a while; a new token in between is taken.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	b := shared.Broker(t)
	soon := b.TokenUntil("service", time.Now().Add(soon))
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, []byte(soon))
	value := subjectOf(t, Config{Address: addressOf(t, b.PlainURL()), Token: core.NewSecret(soon)}).connected(t)
	patient := subjectOf(t, Config{Address: addressOf(t, b.PlainURL()), TokenFile: file},
		func(c *Client) { c.times.patience = patience }).connected(t)
	hasty := subjectOf(t, Config{Address: addressOf(t, b.PlainURL()), TokenFile: file},
		func(c *Client) { c.times.patience = time.Millisecond }).connected(t)
	for path, s := range map[string]*subject{"token": value, "token_file": hasty} {
		within(t, "the end with "+path, s.Fatal())
		if f := s.Err(); f.Code != core.FaultDenied || f.Transient || f.Diagnostics[0].Path != path || strings.Contains(f.Error(), soon) {
			t.Errorf("got %v; want a denied %s", f, path)
		}
	}
	if first, second, third := patient.next(t), patient.next(t), patient.next(t); first.up || !second.up || third.up {
		t.Errorf("the states were %v, %v, %v; want down, up, down", first, second, third)
	}
	write(t, file, []byte(b.Token("service")))
	for got := patient.next(t); !got.up; got = patient.next(t) {
	}
	if patient.Err() != nil {
		t.Errorf("the patient one has ended: %v", patient.Err())
	}
}

// A certificate is what the client introduces itself with where there is no token, and
// goes beside the token where there is one.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	b := shared.Broker(t)
	n := ns(t, b)
	b.Grant(n, "client", "produce", "consume") // the certificate's role
	cert, key := b.Certificate()
	files := TLSFiles{CA: b.CA(), Cert: cert, Key: key}
	s := subjectOf(t, Config{Address: addressOf(t, b.URL()), TLS: files}).connected(t)
	passes(t, s, "persistent://"+n+"/a", "certificate alone")
	s = subjectOf(t, Config{Address: addressOf(t, b.URL()), TLS: files, Token: core.NewSecret(b.Token("stranger"))}).connected(t)
	_, err := s.Topics(t.Context(), n)
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultDenied {
		t.Errorf("the token of a stranger with a certificate lists topics: %v", err)
	}
}

// A broker that is killed leaves the client down, what it is asked then is a fault that
// passes, and closing is no change of state.
func TestKilled(t *testing.T) {
	t.Parallel()
	b := pulsarbroker.Start(t, pulsarbroker.Config{TLS: true, ClientCertificates: true})
	none := subjectOf(t, Config{Address: addressOf(t, b.URL()), TLS: TLSFiles{CA: b.CA()}})
	if f := none.refusedWith(t); f.Code != core.FaultDenied || f.Diagnostics[0].Path != "tls_cert" {
		t.Errorf("without a certificate: %v; want tls_cert named", f)
	}
	cert, key := b.Certificate()
	s := subjectOf(t, Config{Address: addressOf(t, b.URL()), TLS: TLSFiles{CA: b.CA(), Cert: cert, Key: key}}).connected(t)
	s.next(t)
	s.next(t)
	b.Kill()
	if got := s.next(t); got.up || got.reason == "" {
		t.Errorf("the state is %v; want it down and why", got)
	}
	_, err := s.Topics(t.Context(), "public/default")
	if f, ok := errors.AsType[*core.Fault](err); !ok || !f.Transient {
		t.Errorf("topics of nobody: %v; want a fault that passes", err)
	}
	s.mustClose(t)()
	for len(s.changes) > 0 {
		if got := <-s.changes; got.up || strings.Contains(got.reason, "closed") {
			t.Errorf("closing was told as %v", got)
		}
	}
}
