// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

var errHandler = errors.New("it failed")

// source is a kind of subscription, with the kind of the far end that sends to it.
type source struct {
	name, pattern string
	binds         bool
	far           string
	reads         string // the subscription's name
}

var (
	queueBound    = source{"queue bound", settings.PatternQueue, true, "PUSH", "jobs"}
	queueDialing  = source{"queue dialing", settings.PatternQueue, false, "PUSH", "jobs"}
	fanOutBound   = source{"fan-out bound", settings.PatternFanOut, true, "PUB", "events"}
	fanOutDialing = source{"fan-out dialing", settings.PatternFanOut, false, "PUB", "events"}
	rpcBound      = source{"rpc bound", settings.PatternRPC, true, "DEALER", "ask"}
	rpcDialing    = source{"rpc dialing", settings.PatternRPC, false, "DEALER", "ask"}

	// elsewhere are those whose copies need another destination.
	elsewhere = []source{queueDialing, fanOutDialing, rpcBound, rpcDialing}
)

// each runs a test with each source and each kind of far end.
func each(t *testing.T, sources []source, f func(t *testing.T, p party, from source)) {
	for _, from := range sources {
		t.Run(from.name, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) { f(t, p, from) })
		})
	}
}

// service is a host with ZeroMQ plugins as processes: its endpoint "in" reads, and
// "other", where there is one, is a queue that a far end reads.
type service struct {
	*servicetest.Service
	t     *testing.T
	p     party
	from  source
	in    *host.Endpoint
	sub   *host.Subscription
	other *host.Endpoint
	far   end // sends to in
	q     end // reads what other sends
	asks  int // requests so far
}

// attach attaches an endpoint.
func (s *service) attach(name string, set settings.Settings) *host.Endpoint {
	return s.Endpoint(name, host.Plugin{Name: "zmq", Path: pluginPath(s.t)}, set)
}

// newService returns a host whose handler is still to be set. What it dials is
// there already.
func newService(t *testing.T, p party, from source, opts ...host.Option) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t, opts...), t: t, p: p, from: from}
	set := binds(from.pattern, anyPort)
	if !from.binds {
		s.far = p.open(t, from.far, where{bind: heldPort(t)})
		set = dials(from.pattern, s.far.address())
	}
	s.in = s.attach("in", set)
	s.sub = s.in.Subscription(from.reads)
	return s
}

// withOther is newService with "other".
func withOther(t *testing.T, p party, from source, opts ...host.Option) *service {
	t.Helper()
	s := newService(t, p, from, opts...)
	s.q = p.open(t, "PULL", where{bind: anyPort})
	s.other = s.attach("other", dials(settings.PatternQueue, s.q.address()))
	return s
}

// says sets the handler, which always says the same.
func (s *service) says(err error, rules ...host.Rule) {
	s.Handle(s.sub, servicetest.Always(err), rules...)
}

// untilAttempt returns a handler that says the same before an attempt and leaves
// that one, which is then not settled and not told of.
func untilAttempt(n uint64, err error) func(*host.Message[[]byte]) error {
	return func(m *host.Message[[]byte]) error {
		if m.Attempt() >= n {
			return host.Leave()
		}
		return err
	}
}

// clock notes when the handler ran.
type clock struct {
	mu sync.Mutex
	at []time.Time
}

// noting makes a handler note when it runs.
func (c *clock) noting(f func(*host.Message[[]byte]) error) func(*host.Message[[]byte]) error {
	return func(m *host.Message[[]byte]) error {
		c.mu.Lock()
		c.at = append(c.at, time.Now())
		c.mu.Unlock()
		return f(m)
	}
}

// run is when the handler ran the nth time, from 0.
func (c *clock) run(n int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[n]
}

// delayed checks that a copy did not come before it was due.
func delayed(t *testing.T, took, d time.Duration) {
	t.Helper()
	if took < d-20*time.Millisecond {
		t.Errorf("the copy came after %v", took)
	}
}

// begin runs the host, with a far end that sends.
func (s *service) begin() {
	s.t.Helper()
	s.Start()
	if s.from.binds {
		s.far = s.p.open(s.t, s.from.far, where{connect: []string{s.address(s.in)}})
	}
}

// address is where an endpoint listens.
func (s *service) address(e *host.Endpoint) string {
	s.t.Helper()
	as := e.Addresses()
	if len(as) != 1 || strings.HasSuffix(as[0], ":0") {
		s.t.Fatalf("endpoint %s listens at %v", e.Name(), as)
	}
	return as[0]
}

// put sends to the subscription.
func (s *service) put(payload string, headers ...string) {
	s.t.Helper()
	if s.from.pattern == settings.PatternRPC {
		headers = append(headers, "correlation-id", fmt.Sprint("c", s.asks))
		s.asks++
	}
	s.far.put(s.from.reads, payload, headers...)
}

// run is what a run of the handler looks like.
func (s *service) run(attempt int, payload string) string {
	return fmt.Sprintf("%s %d %s", s.from.reads, attempt, payload)
}

// codes compares how often lines with codes were logged. Those that are not named
// may not be there, but L-CHECK, L-DECL and L-ERR.
func (s *service) codes(want map[string]int) {
	s.t.Helper()
	for _, code := range []string{
		"L-UNS", "L-CAP-DL", "L-CAP-RJ", "L-LOST", "L-DELAY", "L-DEC", "L-PAN", "L-FF", "L-REPLY", "L-STREAM", "L-ABND", "L-COPY", "L-DBL", "L-REF", "L-COUNT",
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

// copied is what a copy looks like.
func copied(name, payload string, count int) string {
	return fmt.Sprintf("%s %s x-ruststream-retry-count=%d", name, payload, count)
}

// replyToPeer is the header of a request that says where its reply goes: to the
// identity of the far end.
var replyToPeer = regexp.MustCompile(` reply-to=zmq-reply:([0-9a-f]{2}){1,255}( |$)`)

// shape leaves out of messages what differs from run to run: the identity of who
// asks, and the time of a dead letter, which has to be one in UTC.
func shape(t *testing.T, texts []string) []string {
	t.Helper()
	var out []string
	for _, text := range texts {
		text = replyToPeer.ReplaceAllString(text, " reply-to=#$2")
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

// deadLetter is what a dead letter of the service looks like in shape; carried are
// further headers, as " name=value".
func (s *service) deadLetter(name, payload string, attempts, count int, carried string) string {
	return fmt.Sprintf("%s %s%s x-ruststream-retry-count=%d x-longshore-endpoint=in x-longshore-subscription=%s x-longshore-attempts=%d",
		name, payload, carried, count, s.from.reads, attempts)
}

// asked are the headers that a delivery has which is a request.
func (s *service) asked() string {
	if s.from.pattern == settings.PatternRPC {
		return " reply-to=# correlation-id=c0"
	}
	return ""
}
