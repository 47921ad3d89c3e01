// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// A frame holds at most MaxItems messages and MaxBytes, one larger message
// alone.
func TestPublishFrames(t *testing.T) {
	s := &framing{ended: make(chan struct{}), sizes: make(chan int, 100)}
	b := NewOutbox(OutboxOptions{Endpoint: "out", Logger: slog.New(slog.DiscardHandler)})
	defer b.Close()
	var c collector
	for i := range uint64(600) {
		b.hand(&publish{out: outgoing("x"), copy: true, to: &c, token: i})
	}
	big := frame.Outgoing{Message: core.Message{Name: "q", Payload: make([]byte, 2*frame.MaxBytes)}}
	b.hand(&publish{out: big, copy: true, to: &c, token: 600})
	b.hand(&publish{out: outgoing("x"), copy: true, to: &c, token: 601})
	b.Attach(s, 1, sync.OnceFunc(func() { close(s.ended) }))
	var got []int
	for n := 0; n < 602; {
		size := <-s.sizes
		n += size
		got = append(got, size)
	}
	if diff := cmp.Diff([]int{256, 256, 88, 1, 1}, got); diff != "" {
		t.Error(diff)
	}
}

// framing notes the sizes of frames.
type framing struct {
	ended chan struct{}
	sizes chan int
}

func (s *framing) Send(p *frame.Publishes) error {
	s.sizes <- len(p.Items)
	p.Release()
	return nil
}

func (s *framing) CloseSend() error { return nil }

func (s *framing) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	<-s.ended
	return rs, io.EOF
}
