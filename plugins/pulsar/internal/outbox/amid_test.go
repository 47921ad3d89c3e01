// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
)

// A connection that is cut amid a thousand messages costs none of them: they are
// sent again what was not confirmed. A message that has been stored may be there
// twice, always behind its first copy.
func TestCutAmidMessages(t *testing.T) {
	t.Parallel()
	k, p := behind(t)
	to, r := name(t, "t"), newReceipts(t)
	p.CutAt(proxy.ToServer, proxy.Send, 100, proxy.Inside)
	p.CutAt(proxy.ToClient, proxy.SendReceipt, 300, proxy.Before)
	const n = 1000
	for i := range n {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	r.confirmed(n)
	next := 0
	for _, m := range read(t, broker.Broker(t), to, int(broker.Broker(t).Stats(to).MsgInCounter)) {
		var i int
		if _, err := fmt.Sscan(string(m.Payload()), &i); err != nil {
			t.Fatal(err)
		}
		if i > next {
			t.Fatalf("message %d comes before %d", i, next)
		}
		next = max(next, i+1)
	}
	if next != n {
		t.Errorf("%d of %d messages are stored", next, n)
	}
}

// A topic that moves to another broker, or is unloaded, costs no message.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b)
	to, r := name(t, "t"), newReceipts(t)
	b.CreateTopic(to)
	const n = 600
	for i := range n {
		if i%200 == 100 {
			b.Unload(to)
		}
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	r.confirmed(n)
}

// A topic whose quota is used up refuses at once, as what passes, and takes messages
// again when there is room.
func TestQuota(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"producer_exception", "producer_request_hold"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			namespace := "public/" + clean(t.Name())
			b.CreateNamespace(namespace)
			b.Quota(namespace, 20_000, policy)
			to := namespace + "/t"
			b.CreateTopic(to)
			b.CreateSubscription(to, "reader")
			k := open(t, b)
			var last pluginapi.Receipt
			eventually(t, "the quota to be used up", func() bool {
				last = k.one(to, strings.Repeat("x", 10_000))
				return last.Status != pluginapi.ReceiptConfirmed
			})
			began := time.Now()
			last = k.one(to, "x")
			if last.Status != pluginapi.ReceiptRefused || !last.Fault.Transient || last.Fault.Code != core.FaultExhausted {
				t.Fatalf("%v, %+v", last.Status, last.Fault)
			}
			if took := time.Since(began); took > patience/4 { // it may wait for twice as long
				t.Errorf("it took %v", took)
			}
			b.Admin(http.MethodPost, "persistent/"+to+"/subscription/reader/skip_all", nil, nil)
			eventually(t, "room", func() bool { return k.one(to, "x").Status == pluginapi.ReceiptConfirmed })
		})
	}
}
