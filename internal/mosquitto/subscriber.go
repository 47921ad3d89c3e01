// SPDX-License-Identifier: Apache-2.0

package mosquitto

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/tied"
)

// markers is the topic under which Rest publishes.
const markers = "kit/marker/"

// longestLine holds a message of 64 MiB in hex digits and as text of JSON.
const longestLine = 512 << 20

// Subscriber is a mosquitto_sub, which ends with the test. Its methods are called
// by the test's goroutine; they fail the test where something goes wrong.
type Subscriber struct {
	b      *Broker
	marker string
	cmd    *exec.Cmd
	ended  chan struct{}

	mu   sync.Mutex
	came []Message
	more chan struct{} // something came
}

// Subscribe subscribes to filters at a QoS, and is subscribed when it returns.
// Further arguments are those of mosquitto_sub; -i names the client.
func (b *Broker) Subscribe(qos int, filters []string, args ...string) *Subscriber {
	b.tb.Helper()
	id := b.name("sub")
	for i, arg := range args {
		if arg == "-i" {
			id = args[i+1]
		}
	}
	s := &Subscriber{b: b, marker: markers + b.name("rest"), ended: make(chan struct{}), more: make(chan struct{}, 1)}
	// The broker sends more than a receive maximum allows once it has a backlog, and
	// the client ends at that: this one takes all that there may be.
	all := append(b.client(id), "-D", "connect", "receive-maximum", "65535", "-q", fmt.Sprint(qos), "-F", `%x\t%j`, "-t", s.marker)
	for _, f := range filters {
		all = append(all, "-t", f)
	}
	s.cmd = exec.Command(program(b.tb, "mosquitto_sub"), append(all, args...)...)
	s.cmd.SysProcAttr = tied.Attributes()
	s.cmd.Stderr = b.tb.Output()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		b.tb.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		defer close(s.ended)
		defer tied.Pin()()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.take(b.tb, out)
			_ = s.cmd.Wait() // it is killed
		}
	}()
	if err := <-started; err != nil {
		b.tb.Fatalf("start mosquitto_sub: %v", err)
	}
	b.tb.Cleanup(s.Close)
	for _, f := range append([]string{s.marker}, filters...) {
		b.Await(1, fmt.Sprintf("%s %d %s", id, qos, f))
	}
	return s
}

// Close ends the client without a DISCONNECT.
func (s *Subscriber) Close() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// take reads messages until the end.
func (s *Subscriber) take(tb testing.TB, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		m, err := parse(lines.Text())
		if err != nil {
			tb.Errorf("mosquitto_sub says %q: %v", lines.Text(), err)
			break
		}
		s.mu.Lock()
		s.came = append(s.came, m)
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
	_, _ = io.Copy(io.Discard, out)
}

// parse reads a line: the payload in hex digits, and the message in JSON.
func parse(line string) (Message, error) {
	payload, text, ok := strings.Cut(line, "\t")
	var l struct {
		Topic      string `json:"topic"`
		QoS        int    `json:"qos"`
		Retain     int    `json:"retain"`
		Properties struct {
			User        properties `json:"user-properties"`
			ContentType string     `json:"content-type"`
			Correlation string     `json:"correlation-data"`
			Response    string     `json:"response-topic"`
			Expiry      uint32     `json:"message-expiry-interval"`
			Format      int        `json:"payload-format-indicator"`
		} `json:"properties"`
	}
	bytes, err := hex.DecodeString(payload)
	if !ok || err != nil {
		return Message{}, errors.New("no payload in front")
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Message{}, fmt.Errorf("parse a message: %w", err)
	}
	p := l.Properties
	return Message{
		Topic: l.Topic, Payload: bytes, QoS: l.QoS, Retain: l.Retain == 1, ContentType: p.ContentType, ResponseTopic: p.Response,
		Correlation: p.Correlation, Properties: p.User, Expiry: p.Expiry, Text: p.Format == 1,
	}, nil
}

// properties is an object of JSON whose order is kept, and names that come twice.
type properties []Property

// UnmarshalJSON reads the object.
func (ps *properties) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := d.Token(); err != nil { // the brace
		return fmt.Errorf("parse user properties: %w", err)
	}
	for d.More() {
		var p Property
		for _, word := range []*string{&p.Name, &p.Value} {
			t, err := d.Token()
			if err != nil {
				return fmt.Errorf("parse user properties: %w", err)
			}
			*word = fmt.Sprint(t)
		}
		*ps = append(*ps, p)
	}
	return nil
}

// Messages waits for n further messages. Those of QoS 2 come when they are
// released, so others may come before them.
func (s *Subscriber) Messages(n int) []Message {
	s.b.tb.Helper()
	var got []Message
	s.until(func(m Message) bool {
		got = append(got, m)
		return len(got) == n
	}, n == 0)
	return got
}

// Got is Messages, each as its String shows it.
func (s *Subscriber) Got(n int) []string {
	s.b.tb.Helper()
	return texts(s.Messages(n))
}

// Rest returns what the broker has for it by now: it publishes something more and
// reads until that.
func (s *Subscriber) Rest() []string {
	s.b.tb.Helper()
	s.b.Publish(Message{Topic: s.marker, QoS: 2})
	var got []Message
	s.until(func(m Message) bool {
		if m.Topic == s.marker {
			return true
		}
		if !strings.HasPrefix(m.Topic, markers) { // another one's, which # reads
			got = append(got, m)
		}
		return false
	}, false)
	return texts(got)
}

func texts(ms []Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.String())
	}
	return out
}

// until passes messages on until enough says that it is.
func (s *Subscriber) until(enough func(Message) bool, done bool) {
	s.b.tb.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ended := s.ended
	for !done {
		s.mu.Lock()
		for len(s.came) > 0 && !done {
			m := s.came[0]
			s.came = s.came[1:]
			done = enough(m)
		}
		s.mu.Unlock()
		switch {
		case done:
			return
		case ended == nil:
			s.b.tb.Fatal("mosquitto_sub has ended before what was waited for came")
		}
		select {
		case <-s.more:
		case <-ended:
			ended = nil // look once more
		case <-timer.C:
			s.b.tb.Fatalf("what was waited for does not come to mosquitto_sub\n%s", s.b.log)
		}
	}
}
