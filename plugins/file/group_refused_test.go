// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// refusesGroup checks that the group does not open, and what the fault says.
func (b *bench) refusesGroup(code core.FaultCode, texts ...string) {
	b.t.Helper()
	s, err := b.conn.Subscribe(b.ctx, registration(b.t, 0, "orders", billing))
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || s != nil || f.Code != code || f.Transient || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != "group" {
		b.t.Fatalf("subscribed: %+v", err)
	}
	said := f.Message + " / " + f.Diagnostics[0].Fix
	for _, text := range append(texts, "orders", "billing", "/") {
		if !strings.Contains(said, text) {
			b.t.Errorf("%q does not say %q", said, text)
		}
	}
}

// A position that does not belong to the file refuses the start: the records
// between are neither taken for read nor read twice in silence.
func TestGroupRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, path, position string)
		code  core.FaultCode
		texts []string
	}{
		"the file is another one": {
			spoil: func(t *testing.T, path, _ string) { refill(t, path, 20) },
			code:  core.FaultConflict, texts: []string{"no file created at", "remove", "billing/orders.pos"},
		},
		"the file is shorter": {
			spoil: func(t *testing.T, path, _ string) {
				if err := os.Truncate(path, 300); err != nil {
					t.Fatal(err)
				}
			},
			code: core.FaultConflict, texts: []string{"beyond the end", "remove", "billing/orders.pos"},
		},
		"the file was written anew from an older copy": {
			spoil: func(t *testing.T, path, _ string) {
				if err := os.Truncate(path, 300); err != nil {
					t.Fatal(err)
				}
				b := open(t, settings.Settings{Path: path}, writes("orders"))
				b.put("orders", strings.Split(strings.Repeat("x ", 20), " ")...)
				b.end()
			},
			code: core.FaultConflict, texts: []string{"another one", "remove", "billing/orders.pos"},
		},
		"the position is damaged": {
			spoil: func(t *testing.T, _, position string) {
				if err := os.WriteFile(position, []byte("at 7"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			code: core.FaultInvalid, texts: []string{"no position", "remove it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			refill(t, path, 10)
			b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
			s := b.subscribe("orders", billing)
			ds, _ := b.take(s, 10)
			b.settle(s, core.VerdictAck, ds[2:]...)
			b.closeSub(s)
			b.end()
			position := filepath.Join(path+".groups", "billing", "orders.pos")
			tt.spoil(t, path, position)
			b = open(t, settings.Settings{Path: path}, pluginapi.Usage{})
			b.refusesGroup(tt.code, tt.texts...)
			// The fix works.
			if err := os.Remove(position); err != nil {
				t.Fatal(err)
			}
			b.take(b.subscribe("orders", billing), 1)
		})
	}
}

// refill makes a new file of so many records.
func refill(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	b := open(t, settings.Settings{Path: path}, writes("orders"))
	for i := range n {
		b.put("orders", fmt.Sprint(i+1))
	}
	b.end()
}

// What was handed out and is damaged since is told of, and does not keep the
// position back.
func TestGroupTellsOfWhatIsGone(t *testing.T) {
	path := newPath(t)
	refill(t, path, 5)
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("orders", billing)
	b.wants(s, "1 1", "2 1", "3 1", "4 1", "5 1")
	b.closeSub(s)
	b.end()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte("\x00\x00\x00\x014"), []byte("\x00\x00\x00\x01x"), 1)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	o := billing
	o.Replay = true
	s = b.subscribe("orders", o)
	ds, rs := b.take(s, 4)
	if got := strings.Join(counted(ds), " "); got != "1 2 2 2 3 2 5 2" || len(rs) != 1 || !strings.Contains(rs[0].Position, path) {
		t.Errorf("received %s, reports %+v", got, rs)
	}
	b.settle(s, core.VerdictAck, ds...)
	if got, err := s.Receive(b.ctx, servicetest.Plenty); err != nil || !got.CaughtUp {
		t.Errorf("received %+v, %v", got, err)
	}
}

// Where no position can be written there is no group.
func TestGroupWithoutAFolder(t *testing.T) {
	path := newPath(t)
	refill(t, path, 1)
	b := open(t, settings.Settings{Path: path, Groups: path}, pluginapi.Usage{})
	_, err := b.conn.Subscribe(b.ctx, registration(t, 0, "orders", billing))
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != "settings.groups" || f.Diagnostics[0].Fix == "" || !strings.Contains(f.Diagnostics[0].Message, path) {
		t.Errorf("subscribed: %+v", err)
	}
}

// The position of a group that finds nothing for it moves on all the same, over
// rotations, without being closed.
func TestGroupMovesOn(t *testing.T) {
	path := newPath(t)
	set := settings.Settings{Path: path}
	set.Rotate.Bytes = 2048
	b := open(t, set, writes("others", "orders"))
	b.put("others", "1")
	s := b.subscribe("orders", billing)
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got, err := s.Receive(ctx, servicetest.Plenty); !errors.Is(err, context.Canceled) || len(got.Deliveries)+len(got.Reports) > 0 {
			t.Errorf("received %+v, %v", got, err)
		}
	}()
	first := saved(t, path).Next()
	for range 20 {
		b.put("others", strings.Repeat("x", 500))
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for saved(t, path).Next().Created == first.Created {
		<-look.C
	}
	cancel()
	<-done
	b.closeSub(s)
}

// One reader has a position at a time; who has it is said.
func TestGroupIsHeld(t *testing.T) {
	path := newPath(t)
	refill(t, path, 1)
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("orders", billing)
	other := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	other.refusesGroup(core.FaultConflict, fmt.Sprint(os.Getpid()), "endpoint in", "another group")
	b.closeSub(s)
	other.wants(other.subscribe("orders", billing), "1 1")
}

// Positions hold over rotations. What was not settled and is removed with its
// file is told of; a position whose own file is removed refuses the start.
func TestGroupOverRotations(t *testing.T) {
	path := newPath(t)
	set := settings.Settings{Path: path}
	set.Rotate.Bytes = 2048
	b := open(t, set, writes("orders"))
	payload := strings.Repeat("x", 400)
	for range 40 {
		b.put("orders", payload)
	}
	s := b.subscribe("orders", billing)
	ds, rs := b.take(s, 30)
	if len(rs) > 0 {
		t.Fatalf("reports %v", rs)
	}
	b.settle(s, core.VerdictAck, ds[1:28]...)
	b.closeSub(s)
	s = b.subscribe("orders", billing)
	ds, _ = b.take(s, 13)
	for i, want := range []string{"1", "29", "30", "31"} {
		if got := string(ds[i].Message.Headers[0].Value); got != want {
			t.Errorf("delivery %d is record %s, want %s", i, got, want)
		}
	}
	b.settle(s, core.VerdictAck, ds[2:]...)
	b.closeSub(s)

	old, err := filepath.Glob(filepath.Join(filepath.Dir(path), "orders.0*.ss"))
	if err != nil || len(old) < 8 {
		t.Fatalf("rotated files %q, %v", old, err)
	}
	if err := os.Remove(old[0]); err != nil {
		t.Fatal(err)
	}
	s = b.subscribe("orders", billing)
	ds, rs = b.take(s, 1)
	if got := string(ds[0].Message.Headers[0].Value); got != "29" || ds[0].Attempt != 3 || len(rs) != 1 || rs[0].Fault.Code != core.FaultNotFound {
		t.Errorf("record %s, attempt %d, reports %+v", got, ds[0].Attempt, rs)
	}
	b.closeSub(s)
	s = b.subscribe("orders", billing)
	if ds, rs = b.take(s, 1); len(rs) > 0 || ds[0].Attempt != 4 {
		t.Errorf("the next time: attempt %d, reports %+v", ds[0].Attempt, rs)
	}
	b.closeSub(s)
	b.end()

	// Until the reader comes again the file that it stands in is rotated away.
	b = open(t, set, writes("orders"))
	for range 10 {
		b.put("orders", payload)
	}
	b.end()
	if old, err = filepath.Glob(filepath.Join(filepath.Dir(path), "orders.0*.ss")); err != nil {
		t.Fatal(err)
	}
	for _, p := range old {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	open(t, settings.Settings{Path: path}, pluginapi.Usage{}).refusesGroup(core.FaultConflict, "no file created at", "remove")
}
