// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// direct is an endpoint that is called without a host.
type direct struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // of the test
	conn  pluginapi.Conn
	log   *servicetest.Log
	close func() // once
}

// connectAs connects an endpoint with a client id.
func connectAs(t testing.TB, url, client string, change ...func(*settings.Settings)) *direct {
	t.Helper()
	set := settings.Settings{URL: settings.URL(url), ClientID: client}
	for _, f := range change {
		f(&set)
	}
	d := &direct{t: t, log: &servicetest.Log{}}
	e := servicetest.Configure(t, mqtt.New(), set, nil, d.log)
	e.Inspect(pluginapi.Usage{})
	ctx, cancel := context.WithTimeout(context.Background(), servicetest.Limit)
	d.ctx = ctx
	c, err := e.Connect(ctx, nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	d.conn = c
	d.close = sync.OnceFunc(func() {
		defer cancel()
		if _, err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(d.close)
	return d
}

// options are options of a message.
func options(t testing.TB, o settings.PublishOptions) pluginapi.Options {
	t.Helper()
	x, err := pluginapi.EncodeOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// outgoing returns messages with the payloads 0, 1, ... to a topic.
func outgoing(t testing.TB, topic string, n int, o settings.PublishOptions) []pluginapi.Outgoing {
	t.Helper()
	msgs := make([]pluginapi.Outgoing, n)
	for i := range msgs {
		msgs[i] = servicetest.Message(topic, fmt.Sprint(i))
		msgs[i].Options = options(t, o)
	}
	return msgs
}

// publish publishes and returns the receipts.
func (d *direct) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	d.t.Helper()
	return servicetest.Publish(d.ctx, d.t, d.conn, msgs...)
}

// confirmed publishes what must be confirmed.
func (d *direct) confirmed(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	d.t.Helper()
	rs := d.publish(msgs...)
	for i, r := range rs {
		if r.Status != pluginapi.ReceiptConfirmed {
			d.t.Fatalf("message %d: %d %v", i, r.Status, r.Fault)
		}
	}
	return rs
}
