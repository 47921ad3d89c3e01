// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// service is a host with the file plugin as a process.
type service struct {
	*servicetest.Service
	t    *testing.T
	in   *host.Endpoint
	path string

	publishers map[string]*host.Publisher[core.Message]
}

// pluginPath is the built plugin.
func pluginPath(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/file/longshore-transport-file")
}

// newService returns a host whose handlers are still to be set. Without a path
// of the settings it is a new one.
func newService(t *testing.T, set settings.Settings, opts ...host.Option) *service {
	t.Helper()
	if set.Path == "" {
		set.Path = newPath(t)
	}
	s := &service{
		Service: servicetest.New(t, opts...), t: t, path: set.Path,
		publishers: map[string]*host.Publisher[core.Message]{},
	}
	s.in = s.Endpoint("in", host.Plugin{Name: "file", Path: pluginPath(t)}, set)
	return s
}

// publishes declares keys that put publishes under.
func (s *service) publishes(keys ...string) {
	for _, k := range keys {
		s.publishers[k] = host.To[core.Message](s.Host, s.in.To(k))
	}
}

// read declares a subscription.
func (s *service) read(name string, o settings.Subscription) *host.Subscription {
	return s.in.Subscription(name, host.Options(o))
}

// put publishes a payload, which is confirmed.
func (s *service) put(key, payload string, headers ...string) {
	s.t.Helper()
	m := core.Message{Payload: []byte(payload), Headers: servicetest.Headers(headers...)}
	if _, err := s.publishers[key].Publish(s.t.Context(), m); err != nil {
		s.t.Fatalf("publish %s: %v\n%s", payload, err, s.Log)
	}
}

// stop stops the host and returns what the file holds then.
func (s *service) stop() []string {
	s.t.Helper()
	s.Stop()
	return contents(s.t, s.path)
}

// ended waits for the end without an error and returns what the file holds.
func (s *service) ended() []string {
	s.t.Helper()
	s.Ended()
	s.NoMoreRuns()
	return contents(s.t, s.path)
}

// contents reads a file by a reader of its own: each record as "key payload
// header=value ...", an end mark as "END". The record that begins files is left
// out. Numbers have to be in order.
func contents(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := format.ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	p := format.Parser{Interval: h.Interval}
	numbers := map[string]uint64{}
	for off := format.HeaderSize; off < len(b); {
		var r format.Record
		n, err := p.Next(b[off:], int64(off), &r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		off += n
		switch key := string(r.Key); {
		case r.IsEnd():
			got = append(got, "END")
		case key == format.PrimeKey:
		default:
			numbers[key]++
			if r.Sequence != numbers[key] {
				t.Errorf("record %d of %s has the number %d", numbers[key], key, r.Sequence)
			}
			got = append(got, shownRecord(t, &r))
		}
	}
	return got
}

func shownRecord(t *testing.T, r *format.Record) string {
	headers, payload, err := envelope.Decode(r.Payload)
	if err != nil {
		t.Error(err)
	}
	return servicetest.Text(string(r.Key), payload, headers)
}

// copied is how a copy with a count looks in contents.
func copied(key, payload string, sequence, count int) string {
	return fmt.Sprintf("%s %s stream-sequence=%d x-ruststream-retry-count=%d", key, payload, sequence, count)
}

// written writes a file with records "key payload" as the reference does, and
// returns its path.
func written(t testing.TB, records ...string) string {
	t.Helper()
	b := formattest.New(format.DefaultInterval)
	b.Prime()
	for _, r := range records {
		key, payload, _ := strings.Cut(r, " ")
		b.Add(key, payload)
	}
	path := newPath(t)
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sorted returns texts in order, for what has none.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}
