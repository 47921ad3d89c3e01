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
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
)

// timeout sets how long a message may wait.
func timeout(d time.Duration) func(*outbox.Config) {
	return func(c *outbox.Config) { c.Timeout = d }
}

// behind returns an outbox whose connections pass a proxy.
func behind(t *testing.T, change ...func(*outbox.Config)) (*kit, *proxy.Proxy) {
	t.Helper()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	return openAt(t, p.URL(), change...), p
}

// Where the broker answers nothing, every message has its receipt in time (P-11):
// what was sent may have been stored, what there was no room for was not. What
// was given up is not sent when the broker is back.
func TestP11Stalled(t *testing.T) {
	t.Parallel()
	const limit = hasty
	k, p := behind(t, timeout(limit), func(c *outbox.Config) { c.Window = 4 })
	to := name(t, "t")
	k.warm(to)
	p.Stall(proxy.ToServer)
	r, began := newReceipts(t), time.Now()
	const n = 20
	for i := range n {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	counts := make(map[pluginapi.ReceiptStatus]int)
	for i, x := range r.await(n) {
		counts[x.Status]++
		if took := r.when[i].Sub(began); took > 10*limit || took < limit-100*time.Millisecond {
			t.Errorf("message %d has its receipt after %v", i, took)
		}
		if x.Fault == nil || !x.Fault.Transient || x.Fault.Code != core.FaultTimeout {
			t.Errorf("message %d: %+v", i, x.Fault)
		}
	}
	if counts[pluginapi.ReceiptUnknown] != 4 || counts[pluginapi.ReceiptRefused] != n-4 {
		t.Errorf("receipts: %v", counts)
	}
	p.Resume()
	k.warm(to)
	// The proxy passes on what it had read, in order.
	got := read(t, broker.Broker(t), to, int(broker.Broker(t).Stats(to).MsgInCounter))
	if last := string(got[len(got)-1].Payload()); last != "warm" {
		t.Errorf("%q was sent after it had been given up", last)
	}
}

// While there is no connection nothing is written, so that what has
// waited in vain was certainly not stored.
func TestRefusedWhileDown(t *testing.T) {
	t.Parallel()
	k, p := behind(t, timeout(hasty))
	to := name(t, "t")
	k.warm(to)
	stored := broker.Broker(t).Stats(to).MsgInCounter
	p.Refuse()
	p.Cut()
	p.AwaitThat("the connections to end", func() bool { return p.Open() == 0 })
	k.box.AwaitDown(t)
	if r := k.one(to, "x"); r.Status != pluginapi.ReceiptRefused || !r.Fault.Transient || r.Fault.Code != core.FaultUnavailable {
		t.Fatalf("%v, %+v", r.Status, r.Fault)
	}
	p.Resume()
	k.warm(to)
	if n := broker.Broker(t).Stats(to).MsgInCounter - stored; n != 1 {
		t.Errorf("%d messages are stored", n)
	}
}

// A message that the broker does not allow is refused at once, and the next one
// arrives.
func TestBrokerForbidsMessage(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b)
	to := name(t, "t")
	k.warm(to)
	b.Admin(http.MethodPost, "persistent/public/default/"+to+"/maxMessageSize", 1000, nil)
	eventually(t, "the policy", func() bool {
		began := time.Now()
		r := k.one(to, strings.Repeat("x", 2000))
		if r.Status == pluginapi.ReceiptConfirmed {
			return false
		}
		if r.Status != pluginapi.ReceiptRefused || r.Fault.Transient || r.Fault.Code != core.FaultUnsupported || time.Since(began) > patience/4 {
			t.Fatalf("%v, %+v, after %v", r.Status, r.Fault, time.Since(began))
		}
		return true
	})
	k.warm(to)
}

// A topic that is terminated takes nothing more, whether its producer was open or
// not, and says so at once.
func TestTerminated(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b)
	to := name(t, "t")
	if r := k.one(to, "first"); r.Status != pluginapi.ReceiptConfirmed {
		t.Fatal(r.Status, r.Fault)
	}
	b.Admin(http.MethodPost, "persistent/public/default/"+to+"/terminate", nil, nil)
	began := time.Now()
	for range 3 {
		r := k.one(to, "x")
		if r.Status == pluginapi.ReceiptConfirmed || !strings.Contains(r.Fault.Error(), "terminated") && !strings.Contains(r.Fault.Error(), "Terminated") {
			t.Errorf("%v, %+v", r.Status, r.Fault)
		}
	}
	if took := time.Since(began); took > patience/4 {
		t.Errorf("it took %v", took)
	}
}

// A topic that is deleted is made again for the next message.
func TestDeleted(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b)
	to := name(t, "t")
	for range 2 {
		if r := k.one(to, "first"); r.Status != pluginapi.ReceiptConfirmed {
			t.Fatal(r.Status, r.Fault)
		}
		b.Delete(to)
	}
	r := newReceipts(t)
	for i := range 10 {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	r.confirmed(10)
	read(t, b, to, 10)
}
