// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// looking has a service look for new partitions once a second.
func looking(set *settings.Settings) { set.DiscoveryInterval = core.Duration(time.Second) }

// P-13: two partitions become four while the service runs. All that is published is
// handled, also where the subscribing to a new one is cut off once, which takes the
// connection of the others with it. With a broker that is restarted meanwhile:
// TestBrokerIsAway.
func TestP13PartitionsAdded(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]proxy.Place{"in-peace": -1, "cut-off": proxy.Inside, "cut-behind": proxy.Behind} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grows(t, broker.Broker(t), func(p *proxy.Proxy, grow func()) {
				if at >= 0 {
					p.CutAt(proxy.ToServer, proxy.Subscribe, 2, at)
				}
				grow()
			})
		})
	}
}

// grows has a topic grow under a service, from two partitions to four.
func grows(t *testing.T, b *pulsarbroker.Broker, disturb func(p *proxy.Proxy, grow func())) {
	t.Helper()
	const n = 400
	p := proxy.Start(t, b.Address())
	s := newService(t, rowOptions{broker: b, url: p.URL(), set: looking})
	s.b.CreatePartitioned("public/default/"+s.topic("t"), 2)
	var handled counted
	s.Handle(s.reads("t", settings.SubscribeOptions{}), func(m *host.Message[[]byte]) error {
		handled.add(m.Value)
		return nil
	})
	s.Start()
	disturb(p, func() { s.b.UpdatePartitions("public/default/"+s.topic("t"), 4) })
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprint("key ", i))
	}
	s.put("t", numbered(n, keys...)...)
	began := time.Now()
	s.Eventually("all are handled", func() bool { return !slices.Contains(handled.of(n), 0) })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	for i := range 4 {
		part := fmt.Sprintf("%s-partition-%d", s.topic("t"), i)
		if s.b.Stats(part).MsgInCounter == 0 {
			t.Errorf("partition %d got nothing", i)
		}
		s.b.AwaitBacklog(part, sub, 0)
	}
	endAll(s)
}

// P-14: a topic is deleted under a service that runs, and made again, at once or after
// a while. All that is published then is handled.
func TestP14TopicMadeAgain(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	for name, wait := range map[string]bool{"at once": false, "after a while": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, rowOptions{set: looking})
			full := "public/default/" + s.topic("t")
			s.b.CreateTopic(full)
			s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil))
			s.Start()
			s.put("t", texts("before")...)
			s.handled(1, 1, "before")
			s.b.Delete(full)
			if wait {
				s.Eventually("it is said", func() bool { return len(s.Log.Lines("cannot be read for now")) > 0 })
			}
			s.b.CreateTopic(full)
			began := time.Now()
			s.put("t", numbered(10)...)
			s.Handled(10)
			if took := time.Since(began); took > limit {
				t.Errorf("it took %v", took)
			}
			s.left(0)
			s.Stop()
		})
	}
}
