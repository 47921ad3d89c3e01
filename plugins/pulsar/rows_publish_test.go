// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// refused has a publisher of a service publish, which has to be refused with an
// error that has all of texts; another publish beside it reaches the topic, alone.
func refused(t *testing.T, set func(*settings.Settings), payload string, options []host.SendOption, texts ...string) {
	t.Helper()
	s := newService(t, rowOptions{set: set, host: []host.Option{host.StayUp()}})
	p := host.To[[]byte](s.Host, s.in.To(s.topic("t")))
	s.Start()
	_, err := p.Publish(t.Context(), []byte(payload), options...)
	e, ok := errors.AsType[*host.PublishError](err)
	if !ok || e.MaybeSent {
		t.Fatalf("published with %v", err)
	}
	for _, text := range append(texts, s.topic("t")) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not name %s", err, text)
		}
	}
	if _, err := p.Publish(t.Context(), []byte("fine")); err != nil {
		t.Errorf("the next one: %v", err)
	}
	s.Stop()
	if n := s.b.Stats(s.topic("t")).MsgInCounter; n != 1 {
		t.Errorf("%d messages have reached the topic", n)
	}
}

// Of the size that is set, 512 bytes are the protocol's own.
func TestS_PUL_31(t *testing.T) {
	t.Parallel()
	refused(t, func(s *settings.Settings) { s.MaxMessageSize = 1024 }, strings.Repeat("x", 513), nil, "513", "512")
}

func TestS_PUL_32(t *testing.T) {
	t.Parallel()
	refused(t, nil, "x", []host.SendOption{host.WithHeader("x-bin", "\x00\xff")}, "x-bin", "UTF-8")
}

// On a dead letter such a header travels encoded, and so does the first of two with
// one name.
func TestS_PUL_32_dead_letter(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	m := memtest.Start(t)
	from := s.Endpoint("mem", host.Plugin{Name: "memory", Path: m.Path}, m.Settings)
	s.Handle(from.Subscription("jobs"), servicetest.Always(host.Retry(nil)), s.dead(host.MaxAttempts(1))...)
	s.Start()
	for _, headers := range [][]string{{"x-bin", "\x00\xff"}, {"a", "1", "a", "2"}} {
		m.Publish("jobs", memory.Message{Payload: []byte("x"), Headers: servicetest.Headers(append(headers, "b", "3")...)})
		s.Handled(1)
	}
	s.Stop()
	for i, want := range []string{"AAAABXgtYmluAAAAAgD/", "AAAAAWEAAAABMQ=="} {
		l := s.letters(2)[i]
		if l.properties["x-longshore-headers"] != want || l.properties["b"] != "3" {
			t.Errorf("dead letter %d has %q, want headers %s", i, l.properties, want)
		}
		// From another endpoint it has the count that every source's has.
		if n := l.properties["x-ruststream-retry-count"]; n != "1" {
			t.Errorf("dead letter %d counts %q", i, n)
		}
	}
	s.codes(map[string]int{"L-CAP-DL": 2})
}

func TestS_PUL_39(t *testing.T) {
	t.Parallel()
	refused(t, nil, "x", []host.SendOption{host.WithHeader("a", "1"), host.WithHeader("a", "2")}, "header a", "several times")
}
