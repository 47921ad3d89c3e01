// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
)

// line is one line of a log.
type line map[string]any

// text returns an attribute, "" where there is none.
func (l line) text(key string) string {
	v, ok := l[key]
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

// book collects a log of JSON lines. They are parsed when somebody asks for them:
// most are not asked for.
type book struct {
	mu      sync.Mutex
	text    bytes.Buffer
	entries []entry
	cut     int // how much of text the entries are of
}

// entry is a line of a book, which begins and ends there in its text.
type entry struct {
	from, to int
	parsed   bool
	line     line // nil where it is none
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	for {
		n := bytes.IndexByte(b.text.Bytes()[b.cut:], '\n')
		if n < 0 {
			return len(p), nil
		}
		b.entries = append(b.entries, entry{from: b.cut, to: b.cut + n})
		b.cut += n + 1
	}
}

// of returns the lines with a code of reference 1.15, on one subscription
// unless that is "".
func (b *book) of(code, subscription string) []line {
	return b.with(strconv.Quote(code), func(l line) bool {
		return l.text("code") == code && (subscription == "" || l.text("subscription") == subscription)
	})
}

// that returns the lines that ok says.
func (b *book) that(ok func(line) bool) []line { return b.with("", ok) }

// with returns those of the lines with a word that ok says.
func (b *book) with(word string, ok func(line) bool) []line {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []line
	for i := range b.entries {
		e := &b.entries[i]
		raw := b.text.Bytes()[e.from:e.to]
		if word != "" && !bytes.Contains(raw, []byte(word)) {
			continue
		}
		if !e.parsed {
			e.parsed = true
			_ = json.Unmarshal(raw, &e.line) // else it is no line
		}
		if e.line != nil && ok(e.line) {
			out = append(out, e.line)
		}
	}
	return out
}

// above returns the lines above level debug.
func (b *book) above() []line {
	return b.that(func(l line) bool { return l.text("level") != "DEBUG" })
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// service is a host in the test's own process.
type service struct {
	*host.Host
	t    *testing.T
	log  *book
	stop context.CancelFunc
	done chan struct{}
	err  error     // valid once done
	end  time.Time // likewise
}

func newService(t *testing.T, opts ...host.Option) *service {
	t.Helper()
	s := &service{t: t, log: &book{}, done: make(chan struct{})}
	logger := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Host = host.New(slices.Concat([]host.Option{host.WithLogger(logger)}, patient(), opts)...)
	return s
}

// patient are limits of a host that a plugin keeps on a busy machine.
func patient() []host.Option {
	return []host.Option{host.WithStartLimit(patience), host.WithHeartbeat(time.Second, int(patience/time.Second))}
}

// start runs the host; the end of the test aborts it.
func (s *service) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() {
		defer close(s.done)
		s.err = s.Run(ctx)
		s.end = time.Now()
	}()
	s.t.Cleanup(func() {
		cancel()
		s.Abort()
		<-s.done
		if s.t.Failed() {
			s.t.Logf("the host's log:\n%s", tail(s.log.String()))
		}
	})
}

// tail cuts a log to what somebody reads.
func tail(text string) string {
	const most = 20_000
	if len(text) > most {
		return "...\n" + text[len(text)-most:]
	}
	return text
}

// serve runs the host until it is ready.
func (s *service) serve() {
	s.t.Helper()
	s.start()
	eventually(s.t, "the host is ready", func() bool {
		select {
		case <-s.done:
			s.t.Fatalf("the host does not start: %v", s.err)
		default:
		}
		return s.Ready()
	})
}

// ends waits for the end of Run and returns what it returned.
func (s *service) ends() error {
	s.t.Helper()
	select {
	case <-s.done:
		return s.err
	case <-time.After(patience):
		s.t.Fatal("the host does not stop")
		return nil
	}
}

// stops stops the host, which must end in order.
func (s *service) stops() {
	s.t.Helper()
	s.stop()
	if err := s.ends(); err != nil {
		s.t.Errorf("the host ended with %v", err)
	}
}

// refused runs the host, which must not start.
func (s *service) refused() *host.StartError {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.Run(ctx)
	var e *host.StartError
	if !errors.As(err, &e) || len(e.Findings) == 0 {
		s.t.Fatalf("got %v, want a *StartError with findings", err)
	}
	return e
}
