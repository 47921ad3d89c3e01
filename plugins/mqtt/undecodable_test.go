// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// What has a user property that cannot be read goes the way of the undecodable: no
// handler, no other message and no connection sees anything of it, and its dead
// letter has what could be read.
func TestUnreadableUserProperty(t *testing.T) {
	t.Parallel()
	far := embed(t, false)
	p := proxy.Start(t, far.address)
	s := servicetest.New(t)
	in := s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, settings.Settings{URL: settings.URL(p.URL()), ClientID: clientID})
	s.Handle(in.Subscription("t"), servicetest.Always(nil), host.OnUndecodable(host.AsDeadLetter), host.DeadLetterTo(in.To("q")))
	reader := connectAs(t, "mqtt://"+far.address, "reader")
	q := reader.subscribe(registration(t, "q", settings.SubscribeOptions{}))
	s.Start()
	far.publishUnreadable("t", "x")
	far.publish("t", "y")
	servicetest.Expect(t, "runs", s.Handled(1), "t 1 y")
	dead := reader.one(q)
	if tenant, _ := dead.Message.Headers.Get("tenant"); string(dead.Message.Payload) != "x" || string(tenant) != "a" {
		t.Errorf("the dead letter is %q %v", dead.Message.Payload, dead.Message.Headers)
	}
	s.Stop()
	if n := p.Count(proxy.ToServer, proxy.Puback); n != 2 || p.Accepted() != 1 {
		t.Errorf("%d acks, %d connections", n, p.Accepted())
	}
	if lines := s.Log.Lines("level=WARN", "code=L-DEC"); len(lines) != 1 || !strings.Contains(lines[0], "not UTF-8") {
		t.Errorf("logged %q\n%s", lines, s.Log)
	}
}
