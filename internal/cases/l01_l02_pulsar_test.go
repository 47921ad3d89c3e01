// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// pulsarServiceFile writes a service file with one endpoint at a broker, and these
// subscriptions.
func pulsarServiceFile(t *testing.T, b *pulsarbroker.Broker, subscriptions ...string) string {
	t.Helper()
	pulsarPlugin(t) // beside the command
	program(t)      // the building of it is not timed
	return serviceFile(t, fmt.Sprintf(`
endpoints:
  broker: {transport: pulsar, settings: {url: %q, default_subscription: %s}}
subscriptions:
  %s
`, b.URL(), pulsarSub, strings.Join(subscriptions, "\n  ")))
}

// numbers are n messages whose payloads are their numbers.
func numbers(n int) (ms []*lib.ProducerMessage) {
	for i := range n {
		ms = append(ms, &lib.ProducerMessage{Payload: []byte(strconv.Itoa(i))})
	}
	return ms
}

// L-01: the host is killed under load, three times: its plugin goes with it, no file
// is left, the next one serves soon, and nothing is lost.
func TestL01HostKilledOverPulsar(t *testing.T) {
	t.Parallel()
	const messages, kills = 200, 3
	b := pulsarShared.Broker(t)
	peer := newPulsarPeer(t, b)
	in, out := topicsOf(t)+"in", topicsOf(t)+"out"
	b.CreateSubscription(in, pulsarSub)
	b.CreateSubscription(out, "count")
	arrived := func() int64 { return b.Backlog(out, "count") }
	peer.put(lib.ProducerOptions{Topic: in, DisableBatching: true}, numbers(messages)...)
	file := pulsarServiceFile(t, b, fmt.Sprintf("- {from: broker, name: %s, workers: 4, exec: {command: [cat]}, forward: {to: broker, name: %s}}", in, out))
	dir := socketFolder(t)
	for round := range kills {
		p := startProgram(t, file, nil, inFolder(dir))
		p.servesSoon()
		eventually(t, "it is at work", func() bool { return arrived() >= int64((round+1)*messages/10) })
		p.kill()
		if left := filesIn(dir); len(left) > 0 {
			t.Errorf("round %d: left behind: %v", round, left)
		}
	}
	p := startProgram(t, file, nil, inFolder(dir))
	p.serves()
	b.AwaitBacklog(in, pulsarSub, 0)
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	came := peer.read(out)
	for i := range messages {
		if came[strconv.Itoa(i)] == 0 {
			t.Errorf("message %d is lost", i)
		}
	}
	t.Logf("%d arrived, of %d", arrived(), messages)
}

// L-02: twenty commands are in work when the signal comes to the whole process
// group: all finish, the broker has their acks, the status is 0, and the next
// service has nothing of them. Signalled twice it ends at once, says
// what was in work, and the next one has all of them.
func TestL02SignalOverPulsar(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signal syscall.Signal
		twice  bool
	}{
		"SIGTERM": {syscall.SIGTERM, false}, "SIGINT": {syscall.SIGINT, false}, "SIGTERM twice": {syscall.SIGTERM, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 20
			b := pulsarShared.Broker(t)
			peer := newPulsarPeer(t, b)
			topic := topicsOf(t) + "jobs"
			b.CreateSubscription(topic, pulsarSub)
			gate, began := newDoor(t), filepath.Join(t.TempDir(), "began")
			script := fmt.Sprintf(`echo x >> %s; %s`, began, gate.wait())
			file := pulsarServiceFile(t, b, fmt.Sprintf("- {from: broker, name: %s, workers: %d, exec: {command: [sh, -c, %q]}}", topic, n, script))
			folder := socketFolder(t)
			p := startProgram(t, file, []string{"--drain-limit", (2 * patience).String()}, inFolder(folder))
			p.serves()
			peer.put(lib.ProducerOptions{Topic: topic, DisableBatching: true}, numbers(n)...) // each is an entry of its own
			eventually(t, "all commands run", func() bool { return lineCount(began) == n })
			signalled := time.Now()
			p.signalGroup(tt.signal)
			p.says("msg", "stopping; the next signal ends at once")
			want, left := n, int64(0)
			if tt.twice {
				want, left = 2*n, n
				until(signalled.Add(200 * time.Millisecond)) // another signal is a second one
				p.signalGroup(tt.signal)
				if status := p.status(); status != 128+int(tt.signal) {
					t.Errorf("status %d", status)
				}
				if got := p.says("msg", "host stopped").text("error"); !strings.Contains(got, fmt.Sprint(n, " handlers ")) {
					t.Errorf("it says of what was in work: %q", got)
				}
			} else {
				gate.open()
				if status := p.status(); status != 0 {
					t.Errorf("status %d", status)
				}
			}
			b.AwaitConsumers(topic, pulsarSub, 0)
			if got := b.Backlog(topic, pulsarSub); got != left {
				t.Errorf("%d messages are left at the broker, want %d", got, left)
			}
			if files := filesIn(folder); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
			gate.open()
			next := startProgram(t, file, nil, inFolder(folder))
			next.serves()
			peer.put(lib.ProducerOptions{Topic: topic}, numbers(1)...)
			eventually(t, "what is new, and what was left, has run", func() bool { return lineCount(began) > want })
			b.AwaitBacklog(topic, pulsarSub, 0)
			next.signal(syscall.SIGTERM)
			if status := next.status(); status != 0 {
				t.Errorf("status of the second run: %d", status)
			}
			if got := lineCount(began); got != want+1 {
				t.Errorf("%d commands were begun, want %d", got, want+1)
			}
		})
	}
}
