// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// A message that makes the server end the connection is not sent for ever:
// Mosquitto does so at a topic of more than 200 levels, without an answer. What is
// published around it arrives.
func TestMessageThatEndsConnections(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		qos  int
		kept bool
	}{{0, false}, {1, false}, {2, false}, {2, true}} {
		t.Run(fmt.Sprintf("qos %d kept %t", row.qos, row.kept), func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			sub := b.Subscribe(1, []string{"t"})
			d := connectAs(t, b.URL(), "pub", func(s *settings.Settings) {
				if row.kept {
					keptSession(s)
				}
			})
			msgs := outgoing(t, "t", 100, settings.PublishOptions{QoS: new(1)})
			deep := servicetest.Message(strings.Repeat("a/", 250)+"a", "x")
			deep.Options = options(t, settings.PublishOptions{QoS: new(row.qos)})
			msgs[50] = deep
			rs := d.publish(msgs...)
			for i, r := range rs {
				switch {
				case i != 50 && r.Status != pluginapi.ReceiptConfirmed:
					t.Errorf("message %d: %d %v", i, r.Status, r.Fault)
				case i == 50 && row.qos > 0 && r.Status != pluginapi.ReceiptUnknown:
					t.Errorf("the message that ends connections: %d %v", r.Status, r.Fault)
				}
			}
			sub.Messages(99)
		})
	}
}

// A filter that makes the server end the connection is not asked for any longer
// than its subscription is waited for, in a kept session either.
func TestFilterThatEndsConnections(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	deep, good := registration(t, strings.Repeat("a/", 250)+"a", settings.SubscribeOptions{}), registration(t, "t", settings.SubscribeOptions{})
	set := at(b.URL(), "svc")
	keptSession(&set)
	d := opened(t, set, usage(deep, good))
	s := d.subscribe(good)
	ctx, cancel := context.WithTimeout(d.ctx, 500*time.Millisecond)
	defer cancel()
	if _, err := d.conn.Subscribe(ctx, deep); err == nil {
		t.Fatal("the filter is granted")
	}
	d.confirmed(outgoing(t, "t", 1, settings.PublishOptions{})...)
	ds, _ := d.receive(s, 1)
	d.ack(s, ds...)
}
