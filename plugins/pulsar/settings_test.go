// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	memsettings "github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// What settings and options say is so at the broker.
func TestSettingsReachTheBroker(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{set: func(set *settings.Settings) {
		set.ProducerName, set.Compression = "shop", settings.CompressionZSTD
		set.Batching, set.BatchDelay = true, core.Duration(50*time.Millisecond)
	}})
	s.put("t", texts("early")...)
	s.Handle(s.reads("t", settings.SubscribeOptions{InitialPosition: settings.PositionEarliest, ConsumerName: "till 3"}), servicetest.Always(nil))
	out := host.To[[]byte](s.Host, s.in.To(s.topic("out")))
	s.Start()
	s.handled(1, 1, "early")
	if cs := s.b.Stats(s.topic("t")).Subscriptions[sub].Consumers; len(cs) != 1 || cs[0].Name != "till 3" {
		t.Errorf("consumers %+v", cs)
	}
	const n, size = 10, 10_000
	done := make(chan error, n)
	for range n {
		go func() {
			_, err := out.Publish(t.Context(), bytes.Repeat([]byte{'x'}, size))
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	st := s.b.Stats(s.topic("out"))
	if len(st.Publishers) != 1 || st.Publishers[0].Name != "shop" {
		t.Errorf("publishers %+v", st.Publishers)
	}
	if st.BytesIn > size {
		t.Errorf("%d messages of %d bytes took %d", n, size, st.BytesIn)
	}
	if got := kept(t, s.b, s.topic("out"), "r", n); !slices.ContainsFunc(got, func(m lib.Message) bool { return m.ID().BatchSize() > 1 }) {
		t.Error("each message has an entry of its own")
	}
	s.Stop()
}

// A broker with deduplication drops what has a number that it has seen.
func TestNumbersReachTheBroker(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	const namespace = "public/numbers"
	b.CreateNamespace(namespace)
	b.Deduplicate(namespace)
	c := connection(t, b, settings.Settings{ProducerName: "shop"}, pluginapi.Usage{})
	for i, number := range []int64{7, 7, 8} {
		m := with(t, to(namespace+"/t", "x"), settings.PublishOptions{SequenceID: &number})
		if r := publish(t, c, m)[0]; r.Status != pluginapi.ReceiptConfirmed || (r.Position == nil) != (i == 1) {
			t.Errorf("message %d: %v, %v, position %x", i, r.Status, r.Fault, r.Position)
		}
	}
}

// A publish has its receipt within publish_timeout.
func TestPublishTimeout(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	e := configure(t, settings.Settings{URL: settings.URL(p.URL()), PublishTimeout: core.Duration(500 * time.Millisecond)})
	c, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Stall(proxy.ToServer)
	began := time.Now()
	if r := publish(t, c, to("publish-timeout", "x"))[0]; r.Status != pluginapi.ReceiptRefused || !r.Fault.Transient {
		t.Errorf("%v, %+v", r.Status, r.Fault)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	p.Resume()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	if _, err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// The delay of a copy is the broker's: the copy leaves at once, the original is acked,
// and a host that stops has nothing to wait for.
func TestCopiesWaitAtTheBroker(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	m := memtest.Start(t)
	from := s.Endpoint("mem", host.Plugin{Name: "memory", Path: m.Path}, m.Settings.With("jobs", memsettings.KindM()))
	s.Handle(from.Subscription("jobs"), servicetest.Always(host.RetryAfter(time.Hour, nil)), host.RetryTo(s.in.To(s.topic("again"))))
	s.b.CreateTopic(s.topic("again"))
	s.b.CreateSubscription(s.topic("again"), sub)
	s.Start()
	m.Publish("jobs", memory.Message{Payload: []byte("x")})
	s.Handled(1)
	s.b.AwaitBacklog(s.topic("again"), sub, 1)
	s.Stop()
	s.codes(nil)
}

// startFails returns why a service does not start.
func startFails(t *testing.T, s *service) *host.StartError {
	t.Helper()
	s.Launch()
	e, ok := errors.AsType[*host.StartError](s.Wait())
	if !ok {
		t.Fatalf("ended with %v", s.Wait())
	}
	if took := time.Since(s.Began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	return e
}

// Where no broker answers, the start ends with the reason once connect_timeout is over.
func TestNoBrokerAtStart(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{url: "pulsar://127.0.0.1:1", set: func(set *settings.Settings) {
		set.ConnectTimeout = core.Duration(500 * time.Millisecond)
	}})
	s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil))
	if e := startFails(t, s); !strings.Contains(e.Error(), "127.0.0.1:1") || !strings.Contains(e.Error(), "(tries: ") {
		t.Errorf("got %v", e)
	}
}

// A namespace that is not there is named, and not waited for.
func TestMissingNamespace(t *testing.T) {
	t.Parallel()
	const missing = "public/nowhere/t"
	s := newService(t, rowOptions{})
	s.Handle(s.in.Subscription(missing, host.Options(settings.SubscribeOptions{Subscription: sub})), servicetest.Always(nil))
	if e := startFails(t, s); !strings.Contains(e.Error(), missing) {
		t.Errorf("got %v", e)
	}
	c := connection(t, broker.Broker(t), settings.Settings{}, pluginapi.Usage{})
	r := publish(t, c, to(missing, "x"))[0]
	if r.Status != pluginapi.ReceiptRefused || r.Fault.Transient || !strings.Contains(r.Fault.Error(), missing) {
		t.Errorf("%v, %+v", r.Status, r.Fault)
	}
}

// Files that cannot be used, and a certificate of another host, are named by the
// setting.
func TestSecurityIsChecked(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS() // with a certificate for 127.0.0.1, not for localhost
	defer web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	address := settings.URL(strings.Replace(web.URL, "https://127.0.0.1", "pulsar+ssl://localhost", 1))
	for _, tt := range []struct {
		name string
		set  settings.Settings
		code core.FaultCode
		path string
	}{
		{"no such authority", settings.Settings{TLSCA: "none"}, core.FaultInvalid, "tls_ca"},
		{"no such certificate", settings.Settings{TLSCert: "none", TLSKey: ca}, core.FaultInvalid, "tls_cert"},
		{"no such key", settings.Settings{TLSCert: ca, TLSKey: "none"}, core.FaultInvalid, "tls_key"},
		{"no such token", settings.Settings{TokenFile: "none"}, core.FaultInvalid, "token_file"},
		{"another host", settings.Settings{TLSCA: ca}, core.FaultDenied, "url"},
		{"another host, unchecked", settings.Settings{TLSCA: ca, TLSVerifyHostname: new(false)}, core.FaultUnsupported, "url"}, // no broker
	} {
		tt.set.URL = address
		_, err := configure(t, tt.set).Connect(t.Context(), nil)
		f, ok := errors.AsType[*core.Fault](err)
		if !ok || f.Code != tt.code || f.Transient || len(f.Diagnostics) == 0 || f.Diagnostics[0].Path != tt.path {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}
