// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bytes"
	"runtime"
	"testing"
	"weak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A message on hold where the broker does not bring it back keeps no memory that it
// shares with others, and comes again as it was.
func TestHeldMessagesLeaveTheirFrames(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Exclusive}})
	frame := bytes.Repeat([]byte("abcdefgh"), 8<<10)
	gone := weak.Make(&frame[0])
	handles := b.deliver(t, wire.Message{
		ID: wire.MessageID{Ledger: 7, Entry: 1, Batch: wire.NoBatch}, Key: frame[0:1], OrderingKey: frame[1:2],
		Properties: []wire.Property{{Name: frame[2:3], Value: frame[3:4]}}, Payload: frame[4:8],
	})
	b.in.Hold(handles)
	b.receive(t, 0) // until then it keeps its last list
	for range 3 {
		runtime.GC()
	}
	if gone.Value() != nil {
		t.Error("the frame is kept")
	}
	b.settle(t, core.VerdictRequeue, handles[0])
	out, err := b.in.Receive(t.Context(), pluginapi.Room{Messages: 1, Bytes: 1 << 20})
	if err != nil || len(out.Deliveries) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	m := out.Deliveries[0].Message
	got := string(m.Payload)
	for _, h := range m.Headers {
		got += " " + h.Name + "=" + string(h.Value)
	}
	if want := "efgh partition-key=a pulsar-ordering-key=b c=d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An intake that waits for more keeps nothing of what it has handed out last.
func TestWaitingKeepsNoMessage(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Shared}})
	frame := bytes.Repeat([]byte("abcdefgh"), 8<<10)
	gone := weak.Make(&frame[0])
	handles := b.deliver(t, wire.Message{
		ID:         wire.MessageID{Ledger: 7, Entry: 1, Batch: wire.NoBatch},
		Properties: []wire.Property{{Name: frame[2:3], Value: frame[3:4]}}, Payload: frame[4:8],
	})
	if again := b.receive(t, 1); len(again) > 0 {
		t.Errorf("%d deliveries more", len(again))
	}
	for range 3 {
		runtime.GC()
	}
	if gone.Value() != nil {
		t.Error("the frame is kept")
	}
	b.settle(t, core.VerdictAck, handles...)
}
