// SPDX-License-Identifier: Apache-2.0

package pulsarbroker_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

var broker pulsarbroker.Shared

func TestMain(m *testing.M) { broker.Main(m) }

// client returns a client of Pulsar's own library.
func client(t *testing.T, o pulsar.ClientOptions) pulsar.Client {
	t.Helper()
	o.Logger = log.DefaultNopLogger()
	if o.OperationTimeout == 0 {
		o.OperationTimeout = pulsarbroker.Limit
	}
	c, err := pulsar.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// publish publishes one message.
func publish(t *testing.T, c pulsar.Client, topic, payload string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pulsarbroker.Limit)
	defer cancel()
	// With a send timeout the library would leave a goroutine for as long.
	p, err := c.CreateProducer(pulsar.ProducerOptions{Topic: topic, SendTimeout: -1})
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Send(ctx, &pulsar.ProducerMessage{Payload: []byte(payload)})
	return err
}

// receive returns the payload of the next message of a new subscription, or of one
// that there is.
func receive(t *testing.T, c pulsar.Client, topic, subscription string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pulsarbroker.Limit)
	defer cancel()
	s, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: subscription, Type: pulsar.Shared, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(m); err != nil {
		t.Fatal(err)
	}
	return string(m.Payload())
}

func TestShared(t *testing.T) {
	b := broker.Broker(t)
	c := client(t, pulsar.ClientOptions{URL: b.URL()})
	b.CreateNamespace("public/kit")
	b.CreateTopic("public/kit/a")
	b.CreateSubscription("public/kit/a", "s")
	if err := publish(t, c, "public/kit/a", "x"); err != nil {
		t.Fatal(err)
	}
	b.AwaitBacklog("public/kit/a", "s", 1)
	b.Unload("public/kit/a")
	if got := receive(t, c, "public/kit/a", "s"); got != "x" {
		t.Errorf("got %q", got)
	}
	b.AwaitBacklog("public/kit/a", "s", 0)
	b.Delete("public/kit/a")
	if _, err := b.TryStats("public/kit/a"); err == nil {
		t.Error("a topic that was deleted has stats")
	}
	b.CreatePartitioned("public/kit/p", 2)
	b.UpdatePartitions("public/kit/p", 3)
	if ps, err := c.TopicPartitions("public/kit/p"); err != nil || len(ps) != 3 {
		t.Errorf("partitions: %q, %v", ps, err)
	}
	b.DeletePartitioned("public/kit/p")
	b.Deduplicate("public/kit")
	b.Quota("public/kit", 1<<20, "producer_exception")
}

// Messages are kept over a stop and over a kill, on the same port.
func TestStartAgain(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	c := client(t, pulsar.ClientOptions{URL: b.URL()})
	for _, end := range []func(){b.Stop, b.Kill} {
		b.CreateSubscription("a", "s")
		if err := publish(t, c, "a", "x"); err != nil {
			t.Fatal(err)
		}
		end()
		start := time.Now()
		b.Start()
		t.Logf("started in %v", time.Since(start))
		if got := receive(t, c, "a", "s"); got != "x" {
			t.Errorf("got %q", got)
		}
		b.Delete("a")
		// Said once by each client of a bookie that has come.
		if n := strings.Count(b.Log(), "Failed to resolve network location"); n > 10 {
			t.Errorf("the bookie has come %d times", n)
		}
	}
}

// Who has no token, or one without the permission, may not publish.
func TestTokensAndTLS(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{Tokens: true, Authorize: true, TLS: true})
	b.Grant("public/default", "ann", "produce", "consume")
	for token, want := range map[string]bool{
		b.Token("ann"): true, b.Token("bob"): false, b.TokenUntil("ann", time.Now().Add(-time.Minute)): false, "": false,
	} {
		o := pulsar.ClientOptions{URL: b.URL(), TLSTrustCertsFilePath: b.CA(), TLSValidateHostname: true}
		if !want {
			o.OperationTimeout = 2 * time.Second // it tries for as long
		}
		if token != "" {
			o.Authentication = pulsar.NewAuthenticationToken(token)
		}
		if err := publish(t, client(t, o), "a", "x"); (err == nil) != want {
			t.Errorf("publish with %q: %v", token, err)
		}
	}
	if err := b.TryAdmin(http.MethodGet, "brokers/health", nil, nil); err != nil {
		t.Error(err)
	}
}

// A client's certificate is its role.
func TestClientCertificates(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{TLS: true, ClientCertificates: true, Authorize: true})
	b.GrantTopic("a", "client", "produce")
	cert, key := b.Certificate()
	o := pulsar.ClientOptions{URL: b.URL(), TLSTrustCertsFilePath: b.CA(), TLSValidateHostname: true, OperationTimeout: 2 * time.Second}
	if err := publish(t, client(t, o), "a", "x"); err == nil {
		t.Error("published without a certificate")
	}
	o.Authentication, o.OperationTimeout = pulsar.NewAuthenticationTLS(cert, key), 0
	if err := publish(t, client(t, o), "a", "x"); err != nil {
		t.Error(err)
	}
}
