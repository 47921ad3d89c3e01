// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// disk is an output with room for so many bytes.
type disk struct {
	mu   sync.Mutex
	room int
	text strings.Builder
	err  error
}

func (d *disk) Write(ctx context.Context, p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n := min(len(p), d.room)
	d.room -= n
	d.text.Write(p[:n])
	if n < len(p) {
		return n, fmt.Errorf("write standard output: %w", d.err)
	}
	return n, nil
}

func (d *disk) give(room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room += room
}

// printer is a writer with the receipts of what was put into it.
type printer struct {
	*writer
	receipts chan string
	broke    chan *core.Fault
}

func newPrinter(d *disk) *printer {
	p := &printer{receipts: make(chan string, 16), broke: make(chan *core.Fault, 1)}
	p.writer = newWriter(d, true, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)), func(f *core.Fault) { p.broke <- f })
	return p
}

func (p *printer) put(t *testing.T, payload string) {
	t.Helper()
	f := p.writer.put(core.Message{Name: "k", Payload: []byte(payload)}, pluginapi.PurposeApplication, func(r pluginapi.Receipt) {
		p.receipts <- fmt.Sprint(payload, " ", map[pluginapi.ReceiptStatus]string{
			pluginapi.ReceiptConfirmed: "confirmed", pluginapi.ReceiptRefused: "refused", pluginapi.ReceiptUnknown: "unknown",
		}[r.Status])
	})
	if f != nil {
		t.Errorf("put %s: %v", payload, f)
	}
}

func (p *printer) got(n int) []string {
	var rs []string
	for range n {
		rs = append(rs, <-p.receipts)
	}
	return rs
}

// A full disk is waited for, within the line that met it, and nothing is lost
// or written twice.
func TestFullDiskThatIsMadeRoomOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 5, err: syscall.ENOSPC}
		p := newPrinter(d)
		p.put(t, "one")
		p.put(t, "two")
		p.put(t, "three")
		time.Sleep(20 * time.Second)
		if n := len(p.receipts); n != 1 {
			t.Errorf("%d receipts with room for one line", n)
		}
		d.give(1000)
		if diff := cmp.Diff([]string{"one confirmed", "two confirmed", "three confirmed"}, p.got(3)); diff != "" {
			t.Error(diff)
		}
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := d.text.String(); got != "one\ntwo\nthree\n" {
			t.Errorf("wrote %q", got)
		}
	})
}

// A disk that stays full ends the endpoint: the line that is cut may have been
// read, those behind it never left.
func TestFullDiskThatStaysFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 5, err: syscall.ENOSPC}
		p := newPrinter(d)
		p.put(t, "one")
		p.put(t, "two")
		p.put(t, "three")
		start := time.Now()
		f := <-p.broke
		if took := time.Since(start); took < retryLimit || took > retryLimit+2*retryMost {
			t.Errorf("given up after %v", took)
		}
		if f.Code != core.FaultUnavailable || f.Transient || !strings.Contains(f.Error(), "no space left") {
			t.Errorf("fault %+v", f)
		}
		if diff := cmp.Diff([]string{"one confirmed", "two unknown", "three refused"}, p.got(3)); diff != "" {
			t.Error(diff)
		}
		if got := p.writer.put(core.Message{Name: "k", Payload: []byte("x")}, pluginapi.PurposeApplication, nil); got != f {
			t.Errorf("later: %v", got)
		}
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An error that does not pass is not waited for.
func TestOutputError(t *testing.T) {
	d := &disk{err: syscall.EIO}
	p := newPrinter(d)
	p.put(t, "one")
	if f := <-p.broke; f.Code != core.FaultUnavailable || !errors.Is(d.err, syscall.EIO) {
		t.Errorf("fault %+v", f)
	}
	if diff := cmp.Diff([]string{"one refused"}, p.got(1)); diff != "" {
		t.Error(diff)
	}
	if err := p.close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The end of the wait of a close cuts a wait for room.
func TestCloseDuringAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 1, err: syscall.ENOSPC}
		p := newPrinter(d)
		p.put(t, "one")
		p.put(t, "two")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if diff := cmp.Diff([]string{"one unknown", "two refused"}, p.got(2)); diff != "" {
			t.Error(diff)
		}
	})
}
