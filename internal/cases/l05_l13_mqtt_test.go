// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// L-05: configurations that the plugin refuses when it runs, and one that the
// broker refuses, each twice: the command ends with the reason and the field,
// no process of it lives, and its folders are gone.
func TestL05RefusedOverMQTT(t *testing.T) {
	t.Parallel()
	const rounds = 10
	b := mosquitto.Start(t, mosquitto.Config{Users: map[string]string{"ann": "secret"}})
	mqttPlugin(t) // beside the command
	endpoint := func(settings string) string {
		return fmt.Sprintf("endpoints:\n  broker: {transport: mqtt, settings: {%s}}\n", settings)
	}
	good := fmt.Sprintf("url: %q, client_id: svc", b.URL())
	topic := "subscriptions:\n  - {from: broker, name: t, exec: {command: [cat]}}\n"
	bad := []struct {
		file  string
		words []string
	}{
		{endpoint(`url: "http://localhost", client_id: svc`) + topic, []string{"settings.url", "mqtt://"}},
		{endpoint(good+", colour: red") + topic, []string{"settings", "colour"}},
		{endpoint(good+", keep_alive: 1500ms") + topic, []string{"settings.keep_alive", "whole seconds"}},
		{endpoint(good) + "subscriptions:\n  - {from: broker, name: a/#/b, options: {filter: true}, exec: {command: [cat]}}\n", []string{"a/#/b"}},
		{endpoint(good) + topic, []string{"not authorized", "username"}},
	}
	var files []string
	for _, tt := range bad {
		files = append(files, serviceFile(t, tt.file))
	}
	dir := socketFolder(t)
	for i := range rounds {
		tt := bad[i%len(bad)]
		p := startProgram(t, files[i%len(bad)], nil, inFolder(dir))
		if status := p.status(); status == 0 || status == -1 {
			t.Errorf("status %d", status)
		}
		for _, w := range tt.words {
			if !strings.Contains(p.log.String(), w) {
				t.Errorf("%q is missing in:\n%s", w, p.log)
			}
		}
		if len(p.plugins()) == 0 {
			t.Error("no plugin was started")
		}
		if left := filesIn(dir); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
		if t.Failed() {
			return
		}
	}
}

// L-06 over MQTT, through a broker. Beyond max_packet_size, and beyond what any
// transport carries, the one message is refused; the next one passes.
func TestL06LargeMessagesOverMQTT(t *testing.T) {
	t.Parallel()
	const largest = 65 << 20 // of a packet
	fits := []core.Message{
		large(3<<20, 0, 0), large(5<<20, 0, 0), large(10, 3000, 350-5), large(most-10*(5+95), 10, 95),
	}
	tooLarge := []core.Message{large(most+1, 0, 0), large(most-10*100+1, 10, 95)}
	b := mosquitto.Start(t, mosquitto.Config{})
	s := newService(t)
	set := keptAt(b.URL())
	set.MaxPacketSize = largest
	in := s.mqtt("in", set)
	received := make(chan string, 100)
	host.Handle(in.Subscription("t"), func(_ context.Context, m *host.Message[core.Message]) error {
		received <- sum(m.Value)
		return nil
	})
	to := host.To[core.Message](s.Host, in.To("t"))
	small := s.mqtt("small", mqtt.Settings{URL: set.URL, ClientID: "small"})
	toSmall := host.To[core.Message](s.Host, small.To("t"))
	s.serve()
	plugins := []int{s.pid("in"), s.pid("small")}
	expect := func(to *host.Publisher[core.Message], m core.Message) {
		t.Helper()
		if _, err := to.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-received:
			if diff := cmp.Diff(sum(m), got); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		case <-time.After(patience):
			t.Fatal("nothing is received")
		}
	}
	refused := func(to *host.Publisher[core.Message], m core.Message, words ...string) {
		t.Helper()
		_, err := to.Publish(t.Context(), m)
		e, ok := errors.AsType[*host.PublishError](err)
		f, has := errors.AsType[*core.Fault](err)
		if !ok || !has || e.MaybeSent || f.Code != core.FaultTooLarge {
			t.Fatalf("got %v", err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q is missing in: %v", w, err)
			}
		}
		expect(to, large(100, 1, 1))
	}
	for _, m := range fits {
		expect(to, m)
	}
	for _, m := range tooLarge {
		refused(to, m, fmt.Sprint(len(m.Payload)+m.Headers.Size()), fmt.Sprint(most))
	}
	limit := 1<<20 - 512 // what surrounds payload and headers has its room
	expect(toSmall, large(limit, 0, 0))
	refused(toSmall, large(limit+1, 0, 0), fmt.Sprint(limit+1), fmt.Sprint("limit of ", limit))
	refused(toSmall, large(10, 3000, 350-5), fmt.Sprint("limit of ", limit))
	for i, name := range []string{"in", "small"} {
		if pid := s.pid(name); pid != plugins[i] {
			t.Errorf("the plugin of %s was process %d, and is %d", name, plugins[i], pid)
		}
	}
	if lines := s.log.having("WARN", "connection"); len(lines) > 0 {
		t.Errorf("the log says %v", lines)
	}
	s.stops()
}

// L-13: a proxy that the environment names is not obeyed, also where the variables
// are passed on to the plugin.
func TestL13NoProxyForMQTT(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	out := b.Subscribe(1, []string{"out"})
	mqttPlugin(t) // beside the command
	variables := []string{"all_proxy=socks5://127.0.0.1:1", "ALL_PROXY=socks5://127.0.0.1:1", "https_proxy=http://127.0.0.1:1"}
	for _, passed := range []string{"", "env: [all_proxy, ALL_PROXY, https_proxy], "} {
		file := serviceFile(t, fmt.Sprintf(`
endpoints:
  broker: {transport: mqtt, %ssettings: {url: %q, client_id: svc}}
subscriptions:
  - {from: broker, name: t, forward: {to: broker, name: out}}
`, passed, b.URL()))
		p := startProgram(t, file, nil, func(c *exec.Cmd) { c.Env = append(os.Environ(), variables...) })
		p.serves()
		b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("x"), QoS: 1})
		out.Got(1)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.plugins()["broker"]))
		if err == nil && strings.Contains(string(text), variables[0]) != (passed != "") {
			t.Errorf("%q: the plugin's environment is %q", passed, text)
		}
		p.signal(syscall.SIGTERM)
		if status := p.status(); status != 0 {
			t.Errorf("status %d", status)
		}
	}
}
