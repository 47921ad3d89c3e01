// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// service is a host with the pipe plugin as a process, on pipes of the test's
// own.
type service struct {
	*servicetest.Service
	t   *testing.T
	in  *host.Endpoint
	key *host.Subscription

	stdin *os.File // the test's end
	read  chan []string
}

// newService returns a host whose handler of the key "k" is still to be set.
func newService(t *testing.T, set settings.Settings, opts ...host.Option) *service {
	t.Helper()
	inR, inW := pipes(t)
	outR, outW := pipes(t)
	s := wire(t, set, inR, outW, opts...)
	s.stdin = inW
	s.Closes(inW)
	s.collect(outR)
	return s
}

// wire returns a host between two given pipes, which it takes over.
func wire(t *testing.T, set settings.Settings, in, out *os.File, opts ...host.Option) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t, opts...), t: t}
	s.in = s.Endpoint("in", host.Plugin{
		Name:  "pipe",
		Path:  programtest.Path(t, "github.com/longshore-go/longshore/plugins/pipe/longshore-transport-pipe"),
		Stdio: &host.Stdio{In: in, Out: out},
	}, set)
	s.key = s.in.Subscription("k")
	s.Closes(in, out)
	return s
}

// collect reads what is printed.
func (s *service) collect(r *os.File) {
	s.read = make(chan []string, 1)
	go func() { s.read <- collectLines(r) }()
}

func collectLines(r *os.File) []string {
	defer func() { _ = r.Close() }()
	var got []string
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		got = append(got, scan.Text())
	}
	return got
}

// run feeds the host an input and returns what it printed, once it has ended.
func (s *service) run(input string) []string {
	s.t.Helper()
	s.Launch()
	s.feed(input)
	return s.ended()
}

func (s *service) feed(input string) {
	if _, err := s.stdin.WriteString(input); err != nil {
		s.t.Error(err)
	}
	if err := s.stdin.Close(); err != nil {
		s.t.Error(err)
	}
}

// ended waits for the end without an error and returns what was printed.
func (s *service) ended() []string {
	s.t.Helper()
	s.Ended()
	return <-s.read
}

// refused runs a host whose start is refused for an option of the key "k".
func (s *service) refused(option string, texts ...string) {
	s.t.Helper()
	s.Refused("k", option, texts...)
	<-s.read
}

// outputLine is the form of every line that may be printed.
var outputLine = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) \| ([A-Za-z0-9._-]{1,249}) \| (\d+)\] (.+)$`)

// parsed takes printed lines apart: "key payload header=value ...". It is a
// reader of its own, beside the transport's. The headers of dead letters that
// differ from run to run are left out.
func parsed(t *testing.T, lines []string) []string {
	t.Helper()
	var got []string
	for _, line := range lines {
		m := outputLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q is no message", line)
			continue
		}
		if _, err := time.Parse("2006-01-02T15:04:05", m[1]); err != nil {
			t.Error(err)
		}
		headers, payload, err := envelope.Decode([]byte(m[4]))
		if err != nil {
			t.Error(err)
		}
		got = append(got, servicetest.Text(m[2], payload, headers))
	}
	return got
}

// copied is how a copy with a count looks after parsed.
func copied(key, payload string, sequence, count int) string {
	return fmt.Sprintf("%s %s stream-sequence=%d x-ruststream-retry-count=%d", key, payload, sequence, count)
}

// to is a destination on the endpoint.
func (s *service) to(name string) core.Destination { return s.in.To(name) }
