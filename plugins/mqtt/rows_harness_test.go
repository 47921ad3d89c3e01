// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// clientID is the service's name at the broker.
const clientID = "svc"

// service is a host with this plugin as a process, and a broker.
type service struct {
	*servicetest.Service
	t  *testing.T
	b  *mosquitto.Broker
	in *host.Endpoint
	q  *mosquitto.Subscriber // reads q, where a test asks for it
}

// rowOptions are what a test changes of a service.
type rowOptions struct {
	broker mosquitto.Config
	set    func(*settings.Settings)
	host   []host.Option
}

// newService returns a service with a broker of its own, whose handlers are still
// to be set.
func newService(t *testing.T, o rowOptions) *service {
	t.Helper()
	return newServiceAt(t, mosquitto.Start(t, o.broker), o)
}

// newServiceAt is newService with a broker that is there already.
func newServiceAt(t *testing.T, b *mosquitto.Broker, o rowOptions) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t, o.host...), t: t, b: b}
	set := settings.Settings{URL: settings.URL(b.URL()), ClientID: clientID}
	if o.set != nil {
		o.set(&set)
	}
	s.in = s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, set)
	return s
}

// reads returns a subscription of a QoS.
func (s *service) reads(name string, qos int, more ...host.SubscriptionOption) *host.Subscription {
	return s.in.Subscription(name, append([]host.SubscriptionOption{host.Options(settings.SubscribeOptions{QoS: new(qos)})}, more...)...)
}

// filters returns a subscription of QoS 1 with a filter, shared in a group if one
// is named.
func (s *service) filters(filter, group string) *host.Subscription {
	return s.in.Subscription(filter, host.Options(settings.SubscribeOptions{Filter: true, Group: group}))
}

// row is a service with one subscription to t whose handler always says the same.
func row(t *testing.T, qos int, says error, rules func(s *service) []host.Rule) *service {
	t.Helper()
	s := newService(t, rowOptions{})
	s.q = s.b.Subscribe(2, []string{"q"})
	var rs []host.Rule
	if rules != nil {
		rs = rules(s)
	}
	s.Handle(s.reads("t", qos), servicetest.Always(says), rs...)
	s.Start()
	return s
}

// cap3 is a cap of 3.
func cap3(*service) []host.Rule { return []host.Rule{host.MaxAttempts(3)} }

// toQ are rules with a dead letter to q.
func toQ(rs ...host.Rule) func(*service) []host.Rule {
	return func(s *service) []host.Rule { return append(rs, host.DeadLetterTo(s.in.To("q"))) }
}

// untilAttempt returns a handler that says the same before an attempt and acks
// that one.
func untilAttempt(n uint64, says error) func(*host.Message[[]byte]) error {
	return func(m *host.Message[[]byte]) error {
		if m.Attempt() >= n {
			return nil
		}
		return says
	}
}

// put publishes to a topic; headers are names and values of user properties.
func (s *service) put(topic, payload string, qos int, headers ...string) {
	s.t.Helper()
	m := mosquitto.Message{Topic: topic, Payload: []byte(payload), QoS: qos}
	for i := 0; i < len(headers); i += 2 {
		m.Properties = append(m.Properties, mosquitto.Property{Name: headers[i], Value: headers[i+1]})
	}
	s.b.Publish(m)
}

// attempted are the headers of a message whose next run is this attempt.
func attempted(n int) []string { return []string{"x-ruststream-retry-count", fmt.Sprint(n - 1)} }

// stop stops the service and waits until the broker has logged all of it.
func (s *service) stop() {
	s.t.Helper()
	s.Stop()
	s.b.Await(1, "Received DISCONNECT from "+clientID)
}

// codes compares how often lines with codes were logged. Those that are not named
// may not be there, but L-CHECK, L-DECL and L-ERR.
func (s *service) codes(want map[string]int) {
	s.t.Helper()
	for _, code := range []string{
		"L-UNS", "L-CAP-DL", "L-CAP-RJ", "L-LOST", "L-DELAY", "L-DEC", "L-PAN", "L-FF", "L-REPLY", "L-STREAM", "L-ABND", "L-COPY", "L-DBL", "L-REF", "L-COUNT", "L-HELD",
	} {
		if got := s.Log.Coded(code); got != want[code] {
			s.t.Errorf("%d lines of %s, want %d\n%s", got, code, want[code], s.Log)
		}
	}
}

// once checks the lines of what is warned of once and then summed up.
func (s *service) once(code string) {
	s.t.Helper()
	if n := s.Log.Coded(code); n < 1 || n > 2+int(time.Since(s.Began)/time.Second) {
		s.t.Errorf("%d lines of %s\n%s", n, code, s.Log)
	}
}

// trace is what has passed between the service and the broker since that was
// started last, as packets.
func (s *service) trace() []string { return trace(s.b, clientID) }

// trace reads a broker's log of one client: "out" is what the client sent, "in"
// what it got. A packet id of the server's is "#7"; the client's own, which it
// chooses as it likes, are "@1", "@2" in the order of their first use.
func trace(b *mosquitto.Broker, client string) []string {
	var out []string
	own := map[string]string{}
	name := func(id string) string {
		if own[id] == "" {
			own[id] = fmt.Sprint("@", len(own)+1)
		}
		return own[id]
	}
	for _, line := range b.Lines() {
		direction, rest, ok := cutAny(line, "Received ", "Sending ")
		kind, rest, has := cutAny(rest, " from "+client+" (", " to "+client+" (")
		if !ok || !has || !strings.HasPrefix(kind, "PUB") {
			continue
		}
		way := "in "
		if direction == "Received " {
			way = "out "
		}
		text, id := packetOf(way+kind, rest)
		server := (way == "in ") == (kind == "PUBLISH" || kind == "PUBREL")
		switch {
		case id == "": // of QoS 0
		case server:
			text += " #" + id
		default:
			text += " " + name(id)
		}
		out = append(out, text)
	}
	return out
}

// cutAny cuts a text at one of two words: in front of it, or behind it.
func cutAny(text, first, second string) (before, after string, ok bool) {
	for _, word := range []string{first, second} {
		if before, after, ok := strings.Cut(text, word); ok {
			if before == "" {
				before = word
			}
			return before, after, true
		}
	}
	return "", "", false
}

// packetOf reads what the log has in parentheses: (d0, q1, r0, m1, 't', ... (5
// bytes)), (m1, rc0), (m1), (Mid: 1, RC:0) or (Mid: 1).
func packetOf(text, rest string) (packet, id string) {
	fields := strings.Split(rest, ", ")
	if !strings.HasSuffix(text, "PUBLISH") {
		id = strings.TrimRight(strings.TrimLeft(fields[0], "Mid: m"), ")")
		return text, id
	}
	text += " " + strings.Trim(fields[4], "'") + " " + fields[1]
	if fields[0] == "d1" {
		text += " dup"
	}
	if fields[2] == "r1" {
		text += " retain"
	}
	if fields[1] != "q0" {
		id = fields[3][1:]
	}
	return text, id
}

// inOrder checks that these packets have passed once each, in this order, perhaps
// with others between them.
func (s *service) inOrder(packets ...string) {
	s.t.Helper()
	trace := s.trace()
	last := -1
	for _, p := range packets {
		at := slices.Index(trace, p)
		if at < 0 || slices.Index(trace[at+1:], p) >= 0 || at < last {
			s.t.Errorf("%q is missing, twice there, or too early; want in order\n%s\ngot\n%s\n%s",
				p, strings.Join(packets, "\n"), strings.Join(trace, "\n"), s.Log)
			return
		}
		last = at
	}
}

// passed counts the packets that begin so.
func (s *service) passed(prefix string) int {
	n := 0
	for _, p := range s.trace() {
		if strings.HasPrefix(p, prefix) {
			n++
		}
	}
	return n
}

// sent checks what the service has sent, all of it, in order.
func (s *service) sent(want ...string) {
	s.t.Helper()
	var got []string
	for _, p := range s.trace() {
		if strings.HasPrefix(p, "out ") {
			got = append(got, p)
		}
	}
	servicetest.Expect(s.t, "sent", got, want...)
}

// ackOf is the packet that acks a delivery of a QoS.
func ackOf(qos int) string { return map[int]string{1: "out PUBACK", 2: "out PUBREC"}[qos] }

// doneOf is the packet that ends a publish of a QoS.
func doneOf(qos int) string { return map[int]string{1: "in PUBACK", 2: "in PUBCOMP"}[qos] }

// qualities runs a test with qualities of service.
func qualities(t *testing.T, qs []int, f func(t *testing.T, qos int)) {
	for _, q := range qs {
		t.Run(fmt.Sprint("QoS ", q), func(t *testing.T) { f(t, q) })
	}
}

// copied is what a copy looks like.
func copied(name, payload string, count int) string {
	return fmt.Sprintf("%s %s x-ruststream-retry-count=%d", name, payload, count)
}

// shape leaves the time out of dead letters, which has to be one in UTC.
func shape(t *testing.T, texts []string) []string {
	t.Helper()
	var out []string
	for _, text := range texts {
		if before, rest, ok := strings.Cut(text, " x-longshore-time="); ok {
			at, after, _ := strings.Cut(rest, " ")
			if when, err := time.Parse(time.RFC3339, at); err != nil || !strings.HasSuffix(at, "Z") || time.Since(when) > time.Hour {
				t.Errorf("the dead letter is of %q", at)
			}
			text = strings.TrimSpace(before + " " + after)
		}
		out = append(out, text)
	}
	return out
}

// deadLetter is what a dead letter of a subscription looks like in shape; carried
// are its own headers, as " name=value".
func deadLetter(subscription, payload string, attempts, count int, carried string) string {
	return fmt.Sprintf("q %s%s x-ruststream-retry-count=%d x-longshore-endpoint=in x-longshore-subscription=%s x-longshore-attempts=%d",
		payload, carried, count, subscription, attempts)
}
