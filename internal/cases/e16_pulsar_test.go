// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// E-16: a bridge from MQTT to Pulsar and back to MQTT whose handlers pass headers on as
// they are, and whose far end always fails, three attempts on each side. Pulsar counts
// by itself, whatever count a message brings; MQTT goes by that, so that what has one
// has fewer runs at the far end. It ends with one dead letter, and no copy has two
// counts.
func TestE16BridgeOverMQTTAndPulsar(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		count string   // that the message brings
		runs  []uint64 // attempts at the far end
	}{
		"none": {"", []uint64{1, 2, 3}}, "one": {"1", []uint64{2, 3}}, "beyond the cap": {"7", []uint64{8}}, "no number": {"many", []uint64{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sea, land := mosquitto.Start(t, mosquitto.Config{}), pulsarShared.Broker(t)
			base := topicsOf(t)
			graves := sea.Subscribe(1, []string{"graves"})
			s := newService(t)
			near := s.mqtt("near", mqtt.Settings{URL: mqtt.URL(sea.URL()), ClientID: "near"})
			middle := s.pulsar("middle", land.URL(), nil)
			far := s.mqtt("far", mqtt.Settings{URL: mqtt.URL(sea.URL()), ClientID: "far"})
			carry := func(from *host.Subscription, to *host.Publisher[core.Message], dead core.Destination) *tally {
				return s.notes(from, func(m *host.Message[[]byte]) error {
					_, err := to.Publish(t.Context(), core.Message{Headers: m.Headers().Clone(), Payload: m.Value})
					return err
				}, host.MaxAttempts(3), host.DeadLetterTo(dead))
			}
			there := carry(near.Subscription("near"), host.To[core.Message](s.Host, middle.To(base+"t")), near.To("lost"))
			back := carry(middle.Subscription(base+"t"), host.To[core.Message](s.Host, far.To("far")), middle.To(base+"lost"))
			var counts []int
			runs := s.notes(far.Subscription("far"), func(m *host.Message[[]byte]) error {
				n := 0
				for _, h := range m.Headers() {
					if strings.EqualFold(h.Name, countHeader) {
						n++
					}
				}
				counts = append(counts, n) // one worker
				return host.Retry(nil)
			}, host.MaxAttempts(3), host.DeadLetterTo(far.To("graves")), host.RetryTo(far.To("far")))
			s.serve()
			m := mosquitto.Message{Topic: "near", Payload: []byte("x"), QoS: 1, Properties: []mosquitto.Property{{Name: "x-tenant", Value: "acme"}}}
			if tt.count != "" {
				m.Properties = append(m.Properties, mosquitto.Property{Name: countHeader, Value: tt.count})
			}
			sea.Publish(m)
			dead := graves.Messages(1)[0]
			land.AwaitBacklog(base+"t", pulsarSub, 0)
			s.stops()
			if diff := cmp.Diff(tt.runs, runs.attempts("x")); diff != "" {
				t.Errorf("attempts at the far end (-want +got):\n%s", diff)
			}
			if there.runs("x") != 1 || back.runs("x") != 1 {
				t.Errorf("%d and %d runs on the way", there.runs("x"), back.runs("x"))
			}
			if slices.Max(counts) > 1 {
				t.Errorf("counts of the deliveries: %v", counts)
			}
			if !slices.Contains(dead.Properties, mosquitto.Property{Name: "x-tenant", Value: "acme"}) {
				t.Errorf("the dead letter is %v", dead)
			}
			if rest := graves.Rest(); len(rest) > 0 {
				t.Errorf("more dead letters: %v", rest)
			}
		})
	}
}
