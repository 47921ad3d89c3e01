// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Z-13: ten copies wait when their service is stopped or killed. Copies for a queue that another process reads leave within the limit of
// the stop, or are told as given up. Those that only the stopping process would
// read are not waited for and told as lost. After kill -9 they are lost.
func TestZ13DelayedCopiesAtStop(t *testing.T) {
	t.Parallel()
	const (
		copies = 10
		wait   = 3 * time.Second // of copies that leave
		never  = time.Hour       // of those that do not
		long   = patience        // limit of a stop that waits for them, or need not
		short  = time.Second
	)
	for _, tt := range []struct {
		name  string
		bound bool
		grace time.Duration // 0 = kill -9
		delay time.Duration // of the copies
		come  int
	}{
		{"dialing, long", false, long, wait, copies},
		{"dialing, short", false, short, never, 0},
		{"dialing, kill -9", false, 0, never, 0},
		{"bound, long", true, long, never, 0},
		{"bound, short", true, short, never, 0},
		{"bound, kill -9", true, 0, never, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			far := libzmq.Start(t)
			pull := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
			c := childConfig{
				Endpoints: []childEndpoint{
					{Name: "in", Plugin: "zmq", Path: zmqPlugin(t)},
					{Name: "other", Plugin: "zmq", Path: zmqPlugin(t), Settings: dialing(settings.PatternQueue, pull.Address())},
				},
				Subscriptions: []childSubscription{{From: "in", Name: "jobs"}},
				Drain:         tt.grace,
			}
			var push *libzmq.Socket
			if tt.bound {
				address := freeAddress(t)
				c.Endpoints[0].Settings = bound(settings.PatternQueue, address)
				push = far.Open("PUSH", libzmq.Options{Connect: []string{address}})
			} else {
				push = far.Open("PUSH", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
				c.Endpoints[0].Settings = dialing(settings.PatternQueue, push.Address())
				c.Subscriptions[0].RetryTo = "again@other"
			}
			p := startChild(t, c, inFolder(socketFolder(t)))
			p.next("ready")
			var want [][]string
			for i := range copies {
				payload := fmt.Sprintf("later %v;ack %d", tt.delay, i)
				push.Send("jobs", "", payload)
				want = append(want, []string{"again", "x-ruststream-retry-count: 1", payload})
			}
			for range copies {
				p.next("run")
			}
			asked := time.Now()
			if tt.grace == 0 {
				p.kill()
			} else {
				p.signal(syscall.SIGTERM)
			}
			status := p.status()
			if took := time.Since(asked); took > wait+late {
				t.Errorf("it ended after %v", took)
			}
			got := frames(append(pull.Receive(tt.come), pull.Rest()...))
			slices.SortFunc(got, slices.Compare) // they are due at one time
			if diff := cmp.Diff(want[:tt.come], got); diff != "" && tt.come+len(got) > 0 {
				t.Errorf("copies (-want +got):\n%s", diff)
			}
			if lost := p.log.having("", "no connection"); len(lost) > 0 {
				t.Errorf("its own end is told as a loss: %v", lost)
			}
			p.lostAtStop(t, tt.grace > 0, copies-tt.come, status)
		})
	}
}

// lostAtStop checks what a child says of copies that it gives up at its end.
func (p *process) lostAtStop(t *testing.T, asked bool, n, status int) {
	t.Helper()
	if !asked {
		return
	}
	said := p.next("end").Error
	if n == 0 {
		if status != 0 || said != "" || len(p.log.of("L-ABND", "")) > 0 {
			t.Errorf("status %d, %s", status, said)
		}
		return
	}
	if want := fmt.Sprintf("%d waiting copies are lost", n); status != 1 || !strings.Contains(said, want) || !strings.Contains(said, "jobs") {
		t.Errorf("status %d; %q does not say %q of jobs", status, said, want)
	}
	lines := p.log.of("L-ABND", "jobs")
	if len(lines) != 1 || lines[0].text("level") != "WARN" || lines[0].text("msg") != fmt.Sprintf("%d copies cut off by the stop", n) {
		t.Errorf("lines of L-ABND: %v", lines)
	}
}
