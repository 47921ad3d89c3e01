// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/frame"
)

var errRefused = errors.New("too large")

// slow is a stream whose Send takes until it is told its end, while receipts
// come in.
type slow struct {
	ended    chan struct{}
	sent     chan error
	receipts chan frame.Receipt
}

func (s *slow) Send(p *frame.Publishes) error {
	defer p.Release()
	select {
	case err := <-s.sent:
		return err
	case <-s.ended:
		return io.EOF
	}
}

func (s *slow) CloseSend() error { return nil }

func (s *slow) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	select {
	case r := <-s.receipts:
		return append(rs, r), nil
	case <-s.ended:
		return rs, io.EOF
	}
}

// A receipt that comes while the message is still being sent, forged or because
// the plugin is quick, is told when Send has returned: until then the message's
// memory is read.
func TestReceiptBeforeTheEndOfSend(t *testing.T) {
	confirmed, unknown := frame.ReceiptConfirmed, frame.ReceiptUnknown
	tests := map[string]struct {
		receipts []uint64
		end      func(s *slow)
		want     map[uint64]frame.ReceiptStatus // after the end
		broken   int
	}{
		"sent": {[]uint64{1}, func(s *slow) { s.sent <- nil },
			map[uint64]frame.ReceiptStatus{1: confirmed}, 0},
		"sent, both": {[]uint64{2, 1}, func(s *slow) { s.sent <- nil },
			map[uint64]frame.ReceiptStatus{1: confirmed, 2: confirmed}, 0},
		"failed": {[]uint64{1}, func(s *slow) { s.sent <- errRefused },
			map[uint64]frame.ReceiptStatus{1: confirmed, 2: unknown}, 1},
		"lost": {[]uint64{1}, func(s *slow) { close(s.ended) },
			map[uint64]frame.ReceiptStatus{1: confirmed, 2: unknown}, 1},
		"twice": {[]uint64{1, 1}, func(*slow) {},
			map[uint64]frame.ReceiptStatus{1: confirmed, 2: unknown}, 1},
		"not sent yet": {[]uint64{3}, func(*slow) {},
			map[uint64]frame.ReceiptStatus{1: unknown, 2: unknown}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{ended: make(chan struct{}), sent: make(chan error), receipts: make(chan frame.Receipt)}
				cancel := sync.OnceFunc(func() {
					select {
					case <-s.ended:
					default:
						close(s.ended)
					}
				})
				broken := make(chan error, 8)
				b := NewOutbox(OutboxOptions{
					Endpoint: "out", Logger: slog.New(slog.DiscardHandler),
					Broken: func(_ uint64, err error) { broken <- err },
				})
				defer b.Close()
				var c collector
				for i := range uint64(2) {
					b.hand(&publish{out: outgoing("x"), copy: true, to: &c, token: i + 1})
				}
				b.Attach(s, 1, cancel)
				synctest.Wait()
				for _, id := range tt.receipts {
					if got := c.statuses(); len(got) > 0 {
						t.Errorf("receipts %v while the message is being sent", got)
					}
					s.receipts <- frame.Receipt{ID: id, Status: confirmed}
					synctest.Wait()
				}
				tt.end(s)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, c.statuses()); diff != "" {
					t.Error(diff)
				}
				if len(c.twice) > 0 {
					t.Errorf("two receipts for %v", c.twice)
				}
				if got := len(broken); got != tt.broken {
					t.Errorf("told %d times as broken, want %d", got, tt.broken)
				}
				if got, want := b.Missing(), 2-len(tt.want); got != want {
					t.Errorf("%d missing, want %d", got, want)
				}
			})
		})
	}
}

// The message of an early receipt gives its room back once.
func TestRoomOfAnEarlyReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{ended: make(chan struct{}), sent: make(chan error, 2), receipts: make(chan frame.Receipt)}
		b := NewOutbox(OutboxOptions{Endpoint: "out", Logger: slog.New(slog.DiscardHandler), Messages: 1})
		defer b.Close()
		var c collector
		for i := range uint64(2) {
			b.hand(&publish{out: outgoing("x"), copy: true, to: &c, token: i + 1})
		}
		b.Attach(s, 1, sync.OnceFunc(func() { close(s.ended) }))
		synctest.Wait()
		s.receipts <- frame.Receipt{ID: 1, Status: frame.ReceiptConfirmed}
		synctest.Wait()
		s.sent <- nil
		synctest.Wait()
		s.receipts <- frame.Receipt{ID: 2, Status: frame.ReceiptRefused}
		s.sent <- nil
		synctest.Wait()
		want := map[uint64]frame.ReceiptStatus{1: frame.ReceiptConfirmed, 2: frame.ReceiptRefused}
		if diff := cmp.Diff(want, c.statuses()); diff != "" {
			t.Error(diff)
		}
		b.mu.Lock()
		used := b.used
		b.mu.Unlock()
		if used != (room{}) {
			t.Errorf("room of %+v is taken for nothing", used)
		}
	})
}
