// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// kept collects what a connection hands over.
type kept struct {
	mu    sync.Mutex
	last  []byte
	count int
}

func (k *kept) keep(resume []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.count = resume, k.count+1
}

// state returns what was handed over last, and how often something was.
func (k *kept) state() ([]byte, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.count
}

// A process that replaces another one goes on where that was, whatever its
// options say of the start.
func TestResume(t *testing.T) {
	for name, o := range map[string]settings.Subscription{
		"live":      {},
		"beginning": {Start: settings.Beginning()},
		"sequence":  {Start: settings.Sequence(1)},
		"replay":    {Replay: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			w := open(t, settings.Settings{Path: path}, writes("k"))
			if name != "live" {
				w.put("k", "1", "2", "3")
			}
			b := open(t, settings.Settings{Path: path}, reads("k"))
			var k kept
			b.conn.(pluginapi.Resumer).ReportResume(k.keep)
			s := b.subscribe("k", o)
			if name == "live" {
				w.put("k", "1", "2", "3")
			}
			b.take(s, 2)
			closeSub(t, s)
			state := b.end()
			w.put("k", "4")
			next, err := resume(t, settings.Settings{Path: path}, reads("k"), state)
			if err != nil {
				t.Fatal(err)
			}
			s = next.subscribe("k", o)
			defer closeSub(t, s)
			ds, _ := next.take(s, 2)
			servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k 3 stream-sequence=3", "k 4 stream-sequence=4")
		})
	}
}

// A replay that has caught up has, in the next process too.
func TestResumeOfReplayThatHasCaughtUp(t *testing.T) {
	path := written(t, "k 1", "k 2")
	b := open(t, settings.Settings{Path: path}, reads("k"))
	s := b.subscribe("k", settings.Subscription{Replay: true})
	b.toEnd(s)
	closeSub(t, s)
	b.put("k", "3")
	next, err := resume(t, settings.Settings{Path: path}, reads("k"), b.end())
	if err != nil {
		t.Fatal(err)
	}
	s = next.subscribe("k", settings.Subscription{Replay: true})
	defer closeSub(t, s)
	if ds, _ := next.toEnd(s); len(ds) > 0 {
		t.Errorf("received %q", servicetest.Texts(ds))
	}
}

// Another subscription in the place of one begins as its options say, and so
// does one whose file is not there any more, or whose place is not readable.
func TestResumeOfAnother(t *testing.T) {
	path := written(t, "k 1", "k 2")
	b := open(t, settings.Settings{Path: path}, reads("k"))
	s := b.subscribe("k", settings.Subscription{Start: settings.Beginning()})
	b.take(s, 2)
	closeSub(t, s)
	state := b.end()
	for _, tt := range []struct {
		name, path string
		state      []byte
		o          settings.Subscription
		warns      bool
	}{
		{"other options", path, state, settings.Subscription{Start: settings.Sequence(1)}, false},
		{"another file", written(t, "k 1", "k 2"), []byte(strings.Replace(string(state), `"created":17`, `"created":16`, 1)), settings.Subscription{Start: settings.Beginning()}, true},
		{"rubbish", path, []byte("{"), settings.Subscription{Start: settings.Beginning()}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, err := resume(t, settings.Settings{Path: tt.path}, reads("k"), tt.state)
			if err != nil {
				t.Fatal(err)
			}
			s := next.subscribe("k", tt.o)
			defer closeSub(t, s)
			ds, _ := next.take(s, 2)
			servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k 1 stream-sequence=1", "k 2 stream-sequence=2")
			if warned := strings.Contains(next.log.String(), "level=WARN"); warned != tt.warns {
				t.Errorf("log: %s", next.log)
			}
		})
	}
}

// Places are handed over with the first batch at once, and not with each of
// many.
func TestPlacesAreHandedOver(t *testing.T) {
	const n = 2000
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf("k %d", i)
	}
	b := open(t, settings.Settings{Path: written(t, records...)}, reads("k"))
	var k kept
	b.conn.(pluginapi.Resumer).ReportResume(k.keep)
	s := b.subscribe("k", settings.Subscription{Start: settings.Beginning()})
	defer closeSub(t, s)
	begun, _ := k.state()
	if len(begun) == 0 {
		t.Error("the beginning was not handed over")
	}
	for range n {
		if _, err := s.Receive(b.ctx, pluginapi.Room{Messages: 1, Bytes: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, count := k.state(); count > n/2 {
		t.Errorf("handed over %d times for %d batches", count, n)
	}
	last := b.end()
	if string(last) == string(begun) {
		t.Error("the end was not handed over")
	}
}
