// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// A peer that is only sent to may say what it subscribes to, and takes no memory
// for more: it is disconnected where it announces it.
func TestPeersThatAreSentToSayLittle(t *testing.T) {
	for pattern, kind := range map[string]zmq4.SocketType{settings.PatternQueue: zmq4.Pull, settings.PatternFanOut: zmq4.Sub} {
		b := connect(t, binds(pattern, anyPort), pluginapi.Usage{})
		nc, err := net.Dial("tcp", strings.TrimPrefix(b.address(), "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c, err := zmtp.Open(b.ctx, nc, zmtp.Options{Type: kind, MaxMessage: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		longest := zmtp.AppendSubscribe(nil, strings.Repeat("n", 64<<10), true)
		if _, err := nc.Write(zmtp.AppendHead(longest, 1<<20, false)); err != nil {
			t.Fatal(err)
		}
		if err := c.Reader().Fill(); err == nil {
			t.Errorf("%s: something came", pattern)
		}
		eventually(t, "it is told", func() bool { return len(b.log.Lines("WARN", nc.LocalAddr().String(), "limit is 65537")) == 1 })
	}
}

// A responder answers what it was asked, and nothing that another one was.
func TestRequestIsAnsweredByWhoWasAsked(t *testing.T) {
	asker := connect(t, binds(settings.PatternRPC, anyPort), pluginapi.Usage{})
	asked := make(chan core.Message, 2)
	var responders [2]*bench
	for i := range responders {
		b := connect(t, dials(settings.PatternRPC, asker.address()), reading("calc"))
		b.responder("calc", func(m core.Message) []pluginapi.Outgoing {
			m.Headers = append(m.Headers, core.Header{Name: "by", Value: fmt.Append(nil, i)})
			asked <- m
			return nil
		})
		responders[i] = b
	}
	by := func(m core.Message) byte { return header(m, "by")[0] - '0' }
	for seen := [2]bool{}; !seen[0] || !seen[1]; { // until both are connected
		answered := make(chan error, 1)
		go func() {
			_, err := asker.ask(asker.ctx, "x", "")
			answered <- err
		}()
		m := <-asked
		seen[by(m)] = true
		responders[by(m)].put(replyTo(m, ""))
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
	answers := make(chan string, 2)
	for i := range 2 {
		go func() {
			m, err := asker.ask(asker.ctx, "x", fmt.Sprint(i))
			answers <- fmt.Sprintf("%s %v", m.Payload, err)
		}()
	}
	one, two := <-asked, <-asked
	if by(one) == by(two) {
		t.Fatal("one responder was asked twice")
	}
	// What is sent over the connection of two has the id of one.
	stolen := replyTo(two, "not asked")
	stolen.Message.Headers = servicetest.Headers("correlation-id", header(one, "correlation-id"))
	responders[by(two)].put(stolen)
	eventually(t, "it is skipped", func() bool { return len(asker.log.Lines("reply skipped")) == 1 })
	for _, m := range []core.Message{two, one} {
		responders[by(m)].put(replyTo(m, "right"))
		if got := <-answers; got != "right <nil>" {
			t.Errorf("got %s", got)
		}
	}
}
