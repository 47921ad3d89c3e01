// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/file/settings"
	zmq "github.com/longshore-go/longshore/plugins/zmq/settings"
)

// zmqPlugin is the built plugin of the ZeroMQ transport.
func zmqPlugin(t *testing.T) host.Plugin {
	t.Helper()
	return host.Plugin{Name: "zmq", Path: programtest.Path(t, "github.com/longshore-go/longshore/plugins/zmq/longshore-transport-zmq")}
}

// collector is a service that binds a ZeroMQ queue. It returns the address, and
// what the handler is given, with its headers.
func collector(t *testing.T) (c *servicetest.Service, address string, got <-chan string) {
	t.Helper()
	texts := make(chan string, 10)
	c = servicetest.New(t)
	queue := c.Endpoint("queue", zmqPlugin(t), zmq.Settings{Pattern: zmq.PatternQueue, Bind: "tcp://127.0.0.1:0"})
	c.Handle(queue.Subscription("q"), func(m *host.Message[[]byte]) error {
		texts <- servicetest.Text(m.Name(), m.Value, m.Headers())
		return nil
	}, host.MaxAttempts(3))
	c.Start()
	return c, queue.Addresses()[0], texts
}

// What a stream file cannot keep goes to a ZeroMQ queue of another service: dead
// letters with headers that no text carries, and copies, whose attempts are
// counted on.
func TestS_FIL_26OverZeroMQ(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		code         string // logged once
		rules        func(*host.Endpoint) []host.Rule
		want         string // of what comes over there
	}{
		{"dead letter", "\x00\xff", "L-CAP-DL", func(e *host.Endpoint) []host.Rule {
			return []host.Rule{host.MaxAttempts(1), host.DeadLetterTo(e.To("q"))}
		}, "x-longshore-headers=AAAABXgtYmluAAAAAgD/"},
		{"copy", "text", "", func(e *host.Endpoint) []host.Rule {
			return []host.Rule{host.MaxAttempts(2), host.RetryTo(e.To("q"))}
		}, "q x x-bin=text stream-sequence=1 x-ruststream-retry-count=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, address, got := collector(t)
			s := newService(t, settings.Settings{})
			queue := s.Endpoint("queue", zmqPlugin(t), zmq.Settings{Pattern: zmq.PatternQueue, Connect: []string{address}})
			s.publishes("k")
			s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(host.Retry(nil)), tt.rules(queue)...)
			s.Start()
			s.put("k", "x", "x-bin", tt.header)
			servicetest.Expect(t, "runs", s.Handled(1), "k 1 x")
			servicetest.Expect(t, "runs over there", c.Handled(1), "q 2 x")
			if text := <-got; !strings.Contains(text, tt.want) {
				t.Errorf("%q came, without %q", text, tt.want)
			}
			if tt.code != "" && s.Log.Coded(tt.code) != 1 {
				t.Errorf("log: %s", s.Log)
			}
			servicetest.Expect(t, "file", s.stop(), servicetest.Text("k", []byte("x"), servicetest.Headers("x-bin", tt.header)))
			c.Stop()
		})
	}
}
