// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// numbered are records of two keys, 1..n each, in turns. Record i of a key is of
// the time born(key, i).
func numbered(n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprintf("k %d", i+1), fmt.Sprintf("other %d", i+1))
	}
	return records
}

// bornAt is the time of record i of the key k in a file of numbered; the record
// before them is the file's own.
func bornAt(i int) time.Time { return time.UnixMilli(formattest.Born + int64(2*i)) }

// F-06: positions through a real host: no number is off by one, and the header
// says the true one.
func TestF06Positions(t *testing.T) {
	const n = 20
	for _, tt := range []struct {
		name  string
		start settings.Start
		first int // of the records that are delivered, n+1 = none of them
		fails bool
	}{
		{"beginning", settings.Beginning(), 1, false},
		{"end", settings.End(), n + 1, false},
		{"default", settings.Start{}, n + 1, false},
		{"sequence 0", settings.Sequence(0), 1, false},
		{"sequence 1", settings.Sequence(1), 1, false},
		{"sequence 7", settings.Sequence(7), 7, false},
		{"sequence 21", settings.Sequence(21), n + 1, false},
		{"sequence 22", settings.Sequence(22), 0, true},
		{"sequence 99", settings.Sequence(99), 0, true},
		{"timestamp of 7", settings.After(bornAt(7)), 8, false},
		{"before the file", settings.After(time.UnixMilli(1)), 1, false},
		{"behind the file", settings.After(bornAt(n + 1)), n + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, settings.Settings{Path: written(t, numbered(n)...)})
			s.publishes("k")
			sub := s.read("k", settings.Subscription{Start: tt.start})
			sequences := make(chan string, 2*n)
			s.Handle(sub, func(m *host.Message[[]byte]) error {
				v, _ := m.Headers().Get("stream-sequence")
				sequences <- string(v)
				return nil
			})
			if tt.fails {
				s.Launch()
				err := s.Wait()
				if err == nil || !strings.Contains(err.Error(), "subscription k") || !strings.Contains(err.Error(), tt.start.String()) {
					t.Errorf("ended with %v", err)
				}
				return
			}
			s.Start()
			s.put("k", fmt.Sprint(n+1))
			var want []string
			for i := tt.first; i <= n+1; i++ {
				want = append(want, fmt.Sprintf("k 1 %d", i))
			}
			servicetest.Expect(t, "runs", s.Handled(len(want)), want...)
			for i := tt.first; i <= n+1; i++ {
				if got := <-sequences; got != fmt.Sprint(i) {
					t.Errorf("record %d has the header %s", i, got)
				}
			}
			s.stop()
		})
	}
}

// A replay begins at the beginning, and at a start where one is given.
func TestStartsOfReplay(t *testing.T) {
	path := written(t, numbered(5)...)
	for name, tt := range map[string]struct {
		start settings.Start
		first int
	}{
		"default":   {settings.Start{}, 1},
		"sequence":  {settings.Sequence(4), 4},
		"timestamp": {settings.After(bornAt(2)), 3},
		"end":       {settings.End(), 6},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
			s := b.subscribe("k", settings.Subscription{Replay: true, Start: tt.start})
			defer closeSub(t, s)
			ds, _ := b.toEnd(s)
			var want []string
			for i := tt.first; i <= 5; i++ {
				want = append(want, fmt.Sprintf("k %d stream-sequence=%d", i, i))
			}
			servicetest.Expect(t, "deliveries", servicetest.Texts(ds), want...)
		})
	}
}

func closeSub(t testing.TB, s pluginapi.Subscription) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func seekTo(t *testing.T, s pluginapi.Subscription, to pluginapi.Position) error {
	t.Helper()
	return s.(pluginapi.Seeker).Seek(t.Context(), to)
}

// A replay can be moved although it has caught up, and catches up again.
func TestSeekOfReplay(t *testing.T) {
	b := open(t, settings.Settings{Path: written(t, numbered(6)...)}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{Replay: true})
	defer closeSub(t, s)
	all, _ := b.toEnd(s)
	b.quiet(s)
	for _, tt := range []struct {
		name string
		to   pluginapi.Position
		want []pluginapi.Delivery
	}{
		{"beginning", pluginapi.Position{Kind: pluginapi.PositionBeginning}, all},
		{"end", pluginapi.Position{Kind: pluginapi.PositionEnd}, nil},
		{"time", pluginapi.Position{Kind: pluginapi.PositionTime, Time: bornAt(4)}, all[4:]},
		{"a delivery", pluginapi.Position{Kind: pluginapi.PositionExact, Value: all[2].Position}, all[2:]},
		{"a sequence", pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("sequence 6")}, all[5:]},
	} {
		if err := seekTo(t, s, tt.to); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, _ := b.toEnd(s)
		if diff := cmp.Diff(servicetest.Texts(tt.want), servicetest.Texts(got)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		for i := range got {
			if string(got[i].Position) != string(tt.want[i].Position) || !got[i].PublishedAt.Equal(tt.want[i].PublishedAt) {
				t.Errorf("%s: delivery %d stands elsewhere", tt.name, i)
			}
		}
	}
}

// What makes no sense is refused, and a live subscription goes on where it was.
func TestSeekRefused(t *testing.T) {
	path := written(t, numbered(6)...)
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{Start: settings.Beginning()})
	defer closeSub(t, s)
	ds, _ := b.take(s, 2)
	other := b.subscribe("*", settings.Subscription{Start: settings.Beginning()})
	defer closeSub(t, other)
	foreign, _ := b.take(other, 2)
	for name, value := range map[string]string{
		"nothing":             "",
		"no position":         "no position of this transport",
		"a sequence in words": "sequence seven",
		"another key's":       string(foreign[1].Position),
		"no record there":     string(ds[0].Position[:len(ds[0].Position)-1]) + "\x05",
		"too short":           string(ds[0].Position[1:]),
	} {
		err := seekTo(t, s, pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte(value)})
		if f := faulted(err); f == nil || f.Code != core.FaultInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := seekTo(t, other, pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("sequence 2")}); err == nil {
		t.Error("a sequence of all keys was taken")
	}
	ds, _ = b.take(s, 4)
	if got := string(ds[3].Message.Payload); got != "6" {
		t.Errorf("the last one is %s", got)
	}
}
