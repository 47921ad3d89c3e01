// SPDX-License-Identifier: Apache-2.0

package pulsarbroker_test

import (
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
)

// All that a client does goes through the proxy, and it comes back behind a cut.
func TestProxy(t *testing.T) {
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	c := client(t, pulsar.ClientOptions{URL: p.URL()})
	b.CreateTopic("proxied")
	b.CreateSubscription("proxied", "s")
	p.CutAt(proxy.ToClient, proxy.SendReceipt, 1, proxy.Before)
	if err := publish(t, c, "proxied", "x"); err != nil {
		t.Fatal(err)
	}
	if sent, receipts := p.Count(proxy.ToServer, proxy.Send), p.Count(proxy.ToClient, proxy.SendReceipt); sent != 2 || receipts != 1 {
		t.Errorf("%d messages, %d receipts", sent, receipts)
	}
	b.AwaitBacklog("proxied", "s", 2)
	if got := receive(t, c, "proxied", "s"); got != "x" {
		t.Errorf("got %q", got)
	}
	if p.Count(proxy.ToServer, proxy.Lookup) == 0 || p.Count(proxy.ToServer, proxy.Ack) != 1 {
		t.Error("not all went through it")
	}
}
