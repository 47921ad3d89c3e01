// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// One file has many keys, and each subscription its own, patterns several.
func TestKeysAndPatterns(t *testing.T) {
	path := written(t, "orders.eu 1", "orders.us 2", "other 3", "orders 4")
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	for name, want := range map[string]string{
		"orders": "orders 4", "orders.*": "orders.eu 1, orders.us 2", "o*": "orders.eu 1, orders.us 2, other 3, orders 4",
		"*": "orders.eu 1, orders.us 2, other 3, orders 4", "none": "", "ruststream*": "",
	} {
		s := b.subscribe(name, settings.Subscription{Replay: true})
		ds, _ := b.toEnd(s)
		var got []string
		for _, d := range ds {
			got = append(got, d.Message.Name+" "+string(d.Message.Payload))
			if d.PublishedAt.UnixMilli() <= formattest.Born || len(d.Position) == 0 {
				t.Errorf("%s: delivery %+v", name, d)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %s", name, got, want)
		}
		closeSub(t, s)
	}
}

// Nothing is read beyond the room, and without room nothing at all.
func TestRoom(t *testing.T) {
	b := open(t, settings.Settings{Path: written(t, "k 1111111111", "k 2", "k 3", "k 4")}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{Start: settings.Beginning()})
	defer closeSub(t, s)
	for _, tt := range []struct {
		room pluginapi.Room
		want int
	}{
		{pluginapi.Room{Messages: 1, Bytes: 1 << 20}, 1},
		{pluginapi.Room{Messages: 9, Bytes: 1}, 1},
		{pluginapi.Room{Messages: 9, Bytes: 1 << 20}, 2},
	} {
		batch, err := s.Receive(b.ctx, tt.room)
		if err != nil || len(batch.Deliveries) != tt.want {
			t.Errorf("room %+v: %d deliveries, %v", tt.room, len(batch.Deliveries), err)
		}
	}
	for _, room := range []pluginapi.Room{{}, {Messages: 1}, {Bytes: 1}} {
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		if batch, err := s.Receive(ctx, room); !errors.Is(err, context.Canceled) || len(batch.Deliveries) > 0 {
			t.Errorf("room %+v: %+v, %v", room, batch, err)
		}
	}
}

// Nothing is acked here.
func TestSettleIsUnsupported(t *testing.T) {
	b := open(t, settings.Settings{Path: written(t, "k 1")}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	for _, r := range s.Settle(b.ctx, []pluginapi.Verdict{{Kind: core.VerdictAck}, {Kind: core.VerdictRequeue}}) {
		if r.Status != pluginapi.ResultUnsupported {
			t.Errorf("settled with %v", r)
		}
	}
	want := core.Capabilities{Address: "k", Order: core.OrderTotal}
	if got := s.Profiles(); len(got) != 1 || got[0] != want {
		t.Errorf("profiles %v", got)
	}
}

// A bad record is reported, with path, offset and sequence, and not delivered;
// what is behind it is.
func TestDamageIsReported(t *testing.T) {
	f := formattest.New(format.DefaultInterval)
	f.Prime()
	bad := int64(0)
	for i := range 5 {
		if p := f.Add("k", fmt.Sprintf("payload %d", i+1)); i == 2 {
			bad = p.At
			f.Bytes[p.End-5] ^= 1
		}
	}
	path := newPath(t)
	if err := os.WriteFile(path, f.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{Replay: true})
	defer closeSub(t, s)
	ds, rs := b.toEnd(s)
	servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k payload 1 stream-sequence=1", "k payload 2 stream-sequence=2",
		"k payload 4 stream-sequence=4", "k payload 5 stream-sequence=5")
	if len(rs) != 1 {
		t.Fatalf("reports %v", rs)
	}
	for _, want := range []string{path, fmt.Sprintf("offset %d", bad), "sequence 3"} {
		if !strings.Contains(rs[0].Fault.Message, want) {
			t.Errorf("%q does not name %s", rs[0].Fault.Message, want)
		}
	}
	if want := fmt.Sprintf("%s at offset %d", path, bad); rs[0].Position != want || rs[0].Fault.Code != core.FaultInvalid {
		t.Errorf("report %+v", rs[0])
	}
}

// A record with more headers than a message may have is delivered as one that
// cannot be read.
func TestUndecodable(t *testing.T) {
	// rs1 with 65,537 lines "a:".
	f := formattest.New(format.DefaultInterval)
	f.Prime()
	f.Add("k", tooManyHeaders())
	f.Add("k", "next")
	path := newPath(t)
	if err := os.WriteFile(path, f.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{Replay: true})
	defer closeSub(t, s)
	ds, _ := b.toEnd(s)
	servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k  stream-sequence=1", "k next stream-sequence=2")
	if u := ds[0].Undecodable; u == nil || u.Code != core.FaultTooLarge || !strings.Contains(u.Message, "record 1 of key k") {
		t.Errorf("undecodable %v", u)
	}
	if ds[1].Undecodable != nil {
		t.Errorf("undecodable %v", ds[1].Undecodable)
	}
}

// F-04 through the transport: what happened to the file is reported, and the
// subscription goes on with the new one.
func TestF04ReplacedFile(t *testing.T) {
	path := written(t, "k 1")
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	f := formattest.New(format.DefaultInterval)
	f.Header.Created = formattest.Born + 1000
	f.Prime()
	f.Add("k", "new")
	if err := os.WriteFile(path+".new", f.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	ds, rs := b.take(s, 1)
	servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k new stream-sequence=1")
	if len(rs) != 1 || !strings.Contains(rs[0].Fault.Message, "replaced") {
		t.Errorf("reports %v", rs)
	}
}

// What the endpoint itself writes is there at once, without a notification of
// the file system.
func TestOwnWritesAreReadAtOnce(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("k"))
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	const n = 200
	began := time.Now()
	for i := range n {
		b.put("k", fmt.Sprint(i))
		b.take(s, 1)
	}
	t.Logf("%v a message to the file and back", time.Since(began)/n)
}

// Rotated files are read before the one that is written, and a live reader
// follows.
func TestRotation(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path, Rotate: settings.Rotate{Bytes: 1024}}, writes("k"))
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	const n = 60
	var want []string
	for i := range n {
		b.put("k", fmt.Sprintf("payload number %d", i+1))
		want = append(want, fmt.Sprintf("k payload number %d stream-sequence=%d", i+1, i+1))
	}
	ds, rs := b.take(s, n)
	servicetest.Expect(t, "live", servicetest.Texts(ds), want...)
	if len(rs) > 0 {
		t.Errorf("reports %v", rs)
	}
	if _, err := os.Stat(strings.TrimSuffix(path, ".ss") + ".000002.ss"); err != nil {
		t.Error(err)
	}
	again := b.subscribe("k", settings.Subscription{Replay: true})
	defer closeSub(t, again)
	ds, _ = b.toEnd(again)
	servicetest.Expect(t, "replay", servicetest.Texts(ds), want...)
}
