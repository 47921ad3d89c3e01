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

	"github.com/longshore-go/longshore/internal/mosquitto"
)

// mqttServiceFile writes a service file with one endpoint, a kept session at a
// broker, and these subscriptions.
func mqttServiceFile(t *testing.T, url string, subscriptions ...string) string {
	t.Helper()
	mqttPlugin(t) // beside the command
	program(t)    // the building of it is not timed
	return serviceFile(t, fmt.Sprintf(`
endpoints:
  broker: {transport: mqtt, settings: {url: %q, client_id: %s, clean_start: false, session_expiry: 1h}}
subscriptions:
  %s
`, url, mqttClient, strings.Join(subscriptions, "\n  ")))
}

// L-01: the host of a client id is killed under load, three times, and the next
// one starts at once: the plugin of the one before does not fight for the session,
// the next serves soon, and nothing is lost.
func TestL01ClientIDsAreFree(t *testing.T) {
	t.Parallel()
	const messages, kills = 1000, 3
	b := mosquitto.Start(t, mosquitto.Config{})
	out := b.Subscribe(1, []string{"out"})
	file := mqttServiceFile(t, b.URL(), "- {from: broker, name: t, forward: {to: broker, name: out}}")
	dir := socketFolder(t)
	came := map[string]bool{}
	take := func(upTo int) {
		for len(came) < upTo {
			for _, m := range out.Messages(1) {
				came[string(m.Payload)] = true
			}
		}
	}
	var before *process
	for round := range kills + 1 {
		p := startProgram(t, file, nil, inFolder(dir))
		p.servesSoon()
		if before == nil {
			feed(t.Context(), t, b.URL(), "t", 1, messages, strconv.Itoa, func(int64) bool { return true })
		} else {
			<-before.ended
			before.pluginsGo()
		}
		if round == kills {
			take(messages)
			p.signal(syscall.SIGTERM)
			if status := p.status(); status != 0 {
				t.Errorf("status %d", status)
			}
			if lost := p.log.having("WARN", "no connection"); len(lost) > 0 {
				t.Errorf("the last one has lost its connection: %v", lost)
			}
			break
		}
		take((round + 1) * messages / (kills + 1))
		p.signal(syscall.SIGKILL)
		before = p
	}
	if left := filesIn(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// L-02: twenty commands are in work when the signal comes to the whole process
// group: all finish, the broker has their acks, the status is 0, and the next
// service has nothing of them. Signalled twice it ends at once, and the next one
// has all of them.
func TestL02SignalOverMQTT(t *testing.T) {
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
			b := mosquitto.Start(t, mosquitto.Config{})
			gate, began := newDoor(t), filepath.Join(t.TempDir(), "began")
			script := fmt.Sprintf(`echo x >> %s; %s`, began, gate.wait())
			var subscriptions []string
			for i := range n {
				subscriptions = append(subscriptions, fmt.Sprintf("- {from: broker, name: jobs/%d, exec: {command: [sh, -c, %q]}}", i, script))
			}
			file := mqttServiceFile(t, b.URL(), subscriptions...)
			sockets := inFolder(socketFolder(t))
			p := startProgram(t, file, []string{"--drain-limit", (2 * patience).String()}, sockets)
			p.serves()
			for i := range n {
				b.Publish(mosquitto.Message{Topic: fmt.Sprintf("jobs/%d", i), Payload: []byte("x"), QoS: 1})
			}
			eventually(t, "all commands run", func() bool { return lineCount(began) == n })
			signalled := time.Now()
			p.signalGroup(tt.signal)
			p.says("msg", "stopping; the next signal ends at once")
			want, acks := n+1, n
			if tt.twice {
				want, acks = 2*n+1, 0
				until(signalled.Add(200 * time.Millisecond)) // another signal is a second one
				p.signalGroup(tt.signal)
				if status := p.status(); status != 128+int(tt.signal) {
					t.Errorf("status %d", status)
				}
				gate.open()
			} else {
				gate.open()
				if status := p.status(); status != 0 {
					t.Errorf("status %d", status)
				}
				b.Await(1, "Received DISCONNECT from "+mqttClient)
			}
			if got := len(b.Lines("Received PUBACK from " + mqttClient)); got != acks {
				t.Errorf("the broker has %d acks, want %d", got, acks)
			}
			next := startProgram(t, file, nil, sockets)
			next.serves()
			b.Publish(mosquitto.Message{Topic: "jobs/0", Payload: []byte("new"), QoS: 1})
			b.Await(n+1, "Received PUBACK from "+mqttClient)
			next.signal(syscall.SIGTERM)
			if status := next.status(); status != 0 {
				t.Errorf("status of the second run: %d", status)
			}
			if got := lineCount(began); got != want {
				t.Errorf("%d commands were begun, want %d", got, want)
			}
		})
	}
}
