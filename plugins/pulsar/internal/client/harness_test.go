// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// patience is how long a test waits for what must come.
const patience = pulsarbroker.Limit

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// within takes one value out of a channel.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("not reached")
	}
}

// logged is a log that tests read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// change is a state that a client has told.
type change struct {
	up     bool
	reason string
}

// subject is a client under test.
type subject struct {
	*Client
	log     *logged
	changes chan change
}

// addressOf reads a URL that is good.
func addressOf(t *testing.T, url string) Address {
	t.Helper()
	a, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// subjectOf returns a client with short times, which is closed with the test. Its log
// must not show its token.
func subjectOf(t *testing.T, c Config, tune ...func(*Client)) *subject {
	t.Helper()
	s := &subject{log: &logged{}, changes: make(chan change, 1000)}
	c.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = patience
	}
	var err error
	if s.Client, err = New(c); err != nil {
		t.Fatal(err)
	}
	s.times.first, s.times.last = 5*time.Millisecond, 20*time.Millisecond
	for _, f := range tune {
		f(s.Client)
	}
	s.WatchLink(func(up bool, reason string) { s.changes <- change{up, reason} })
	token, err := s.config.token()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.mustClose(t)()
		if token != "" && strings.Contains(s.log.String(), token) {
			t.Errorf("the log shows the token:\n%s", s.log)
		}
	})
	return s
}

// mustClose closes it within the test's patience.
func (s *subject) mustClose(t *testing.T) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// connected has connected.
func (s *subject) connected(t *testing.T) *subject {
	t.Helper()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatalf("connect: %v\n%s", err, s.log)
	}
	return s
}

// refusedWith is the fault with which it does not connect.
func (s *subject) refusedWith(t *testing.T) *core.Fault {
	t.Helper()
	err := s.Connect(t.Context())
	f, ok := errors.AsType[*core.Fault](err)
	if !ok {
		t.Fatalf("got %v; want a fault", err)
	}
	return f
}

// next is the next change of its state.
func (s *subject) next(t *testing.T) change {
	t.Helper()
	return within(t, "a change of the link's state", s.changes)
}
