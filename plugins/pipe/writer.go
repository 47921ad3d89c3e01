// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// output is where lines go.
type output interface {
	Write(ctx context.Context, p []byte) (int, error)
}

// The bounds of what waits for the output. The host has at most 1024 messages
// and 8 MiB without a receipt, one larger message beyond that.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 16 << 20
)

// writeSize is how many bytes of lines are gathered, without waiting, for one
// write.
const writeSize = 64 << 10

// The pauses between tries while the output has no room for a while, as a full
// disk, and how long it is tried: less than a host waits for a receipt.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
	retryLimit = 30 * time.Second
)

// writer prints messages, one goroutine for all.
type writer struct {
	out    output
	plain  bool
	now    func() time.Time
	log    *slog.Logger
	broken func(*core.Fault) // called once, when nothing can be printed any more

	patience time.Duration // with an output that has no room

	life   context.Context //nolint:containedctx // ends a write under way
	cancel context.CancelFunc
	done   chan struct{} // the goroutine has ended

	mu      sync.Mutex
	more    chan struct{} // something to print, or the end
	waiting []entry
	bytes   int
	closing bool
	fault   *core.Fault // why nothing is printed any more

	// Of the goroutine alone.
	numbers  numbers
	buf      []byte
	printing []entry
	second   int64 // the time that stamp shows
	stamp    []byte
}

// entry is a message that waits. It is the caller's until its receipt.
type entry struct {
	message core.Message
	answer  func(pluginapi.Receipt)
	end     int // of its line in the buffer
}

func newWriter(out output, plain bool, now func() time.Time, log *slog.Logger, broken func(*core.Fault)) *writer {
	w := &writer{
		out: out, plain: plain, now: now, log: log, broken: broken,
		patience: retryLimit, done: make(chan struct{}), more: make(chan struct{}, 1), second: -1,
	}
	w.life, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// put takes a message, or says why not; then answer is not called.
func (w *writer) put(m core.Message, p pluginapi.Purpose, answer func(pluginapi.Receipt)) *core.Fault {
	if w.plain {
		if p == pluginapi.PurposeRetry {
			return fault.Refusal(core.FaultUnsupported,
				"publish under %s: plain output carries no headers, and a copy counts in one; send copies elsewhere or use loopback", m.Name)
		}
		if bytes.IndexByte(m.Payload, '\n') >= 0 {
			return fault.Refusal(core.FaultInvalid, "publish under %s: plain output cannot carry a line break within a payload", m.Name)
		}
	} else if len(m.Payload) == 0 && len(m.Headers) == 0 {
		return fault.Refusal(core.FaultInvalid, "publish under %s: the message is empty, and empty lines are dropped", m.Name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.fault != nil:
		return w.fault
	case w.closing:
		return fault.Closed("publish")
	case len(w.waiting) >= maxWaiting || w.bytes >= maxWaitingBytes:
		return &core.Fault{
			Code: core.FaultExhausted, Transient: true,
			Message: "publish: " + strconv.Itoa(len(w.waiting)) + " messages wait for the next stage to read",
		}
	}
	w.waiting = append(w.waiting, entry{message: m, answer: answer})
	w.bytes += m.Size()
	w.wake()
	return nil
}

func (w *writer) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// run prints until it is closed.
func (w *writer) run() {
	defer close(w.done)
	for w.take() {
		w.print()
	}
}

// take waits for messages and encodes as many as make a write. It reports false
// at the end.
func (w *writer) take() bool {
	for {
		w.mu.Lock()
		if len(w.waiting) > 0 && w.fault == nil && w.life.Err() == nil {
			w.encode()
			w.mu.Unlock()
			return true
		}
		rest, f := w.waiting, w.fault
		w.waiting, w.bytes = nil, 0
		ends := w.closing || w.life.Err() != nil
		if f == nil && ends {
			f = fault.Closed("publish")
			w.fault = f
		}
		w.mu.Unlock()
		for i := range rest {
			rest[i].answer(pluginapi.Refused(f))
		}
		if ends {
			return false
		}
		select {
		case <-w.more:
		case <-w.life.Done():
		}
	}
}

// encode moves waiting messages into the buffer as lines; w.mu is held.
func (w *writer) encode() {
	w.buf, w.printing = w.buf[:0], w.printing[:0]
	n := 0
	for n < len(w.waiting) && len(w.buf) < writeSize {
		e := w.waiting[n]
		w.line(&e.message)
		w.bytes -= e.message.Size()
		e.end = len(w.buf)
		w.printing = append(w.printing, e)
		n++
	}
	rest := copy(w.waiting, w.waiting[n:])
	clear(w.waiting[rest:])
	w.waiting = w.waiting[:rest]
}

// line appends one line to the buffer.
func (w *writer) line(m *core.Message) {
	if w.plain {
		w.buf = append(append(w.buf, m.Payload...), '\n')
		return
	}
	if now := w.now().UTC(); now.Unix() != w.second {
		w.second, w.stamp = now.Unix(), now.AppendFormat(w.stamp[:0], timeLayout)
	}
	b := append(w.buf, '[')
	b = append(b, w.stamp...)
	b = append(b, " | "...)
	b = append(b, m.Name...)
	b = append(b, " | "...)
	b = strconv.AppendUint(b, w.numbers.next(m.Name), 10)
	b = append(b, "] "...)
	if envelope.NeededInLine(m.Headers, m.Payload) {
		b = envelope.Append(b, m.Headers, m.Payload)
	} else {
		b = append(b, m.Payload...)
	}
	w.buf = append(b, '\n')
}

// print writes the buffer and answers for the messages in it.
func (w *writer) print() {
	written, answered := 0, 0
	var wait patience
	for {
		n, err := w.out.Write(w.life, w.buf[written:])
		written += n
		for answered < len(w.printing) && w.printing[answered].end <= written {
			w.printing[answered].answer(pluginapi.Confirmed())
			answered++
		}
		if err == nil {
			break
		}
		if n > 0 {
			wait = patience{}
		}
		if waits(err) && w.pause(&wait, err) {
			continue
		}
		w.fail(err, written, answered)
		break
	}
	clear(w.printing)
	if cap(w.buf) > 4*writeSize {
		w.buf = nil // of a large message
	}
}

// waits reports whether an error passes by itself, as a full disk does once
// somebody has made room.
func waits(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOBUFS)
}

// patience is how long the same bytes are tried already.
type patience struct{ next, total time.Duration }

// pause waits before the same bytes are tried again. It reports false at the
// end, and when that has been tried for long enough.
func (w *writer) pause(p *patience, err error) bool {
	if p.total == 0 {
		p.next = retryFirst
		w.log.Warn("standard output has no room; printing waits for it", "limit", w.patience, "error", err)
	}
	if p.total >= w.patience {
		return false
	}
	t := time.NewTimer(p.next)
	defer t.Stop()
	p.total += p.next
	p.next = min(2*p.next, retryMost)
	select {
	case <-t.C:
		return true
	case <-w.life.Done():
		return false
	}
}

// fail gives up the output. Of the messages in the buffer the one whose line is
// cut may have been read; those behind it never left.
func (w *writer) fail(err error, written, answered int) {
	var f *core.Fault
	switch {
	case errors.Is(err, syscall.EPIPE):
		f = nextStageGone()
	case w.life.Err() != nil:
		f = fault.Closed("publish")
	default:
		f = outputFails(err)
	}
	w.mu.Lock()
	w.fault = f
	w.mu.Unlock()
	start := 0
	if answered > 0 {
		start = w.printing[answered-1].end
	}
	for i, e := range w.printing[answered:] {
		r := pluginapi.Refused(f)
		// Nobody reads the rest of a line whose reader is gone.
		if i == 0 && written > start && !errors.Is(err, syscall.EPIPE) {
			r.Status = pluginapi.ReceiptUnknown
			w.log.Warn("standard output ends within a line", "key", e.message.Name)
		}
		e.answer(r)
	}
	if w.life.Err() == nil {
		w.broken(f)
	}
}

// close prints what is waiting, as long as ctx allows, and ends the goroutine.
func (w *writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	w.wake()
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		w.cancel()
		<-w.done
		return context.Cause(ctx)
	}
	w.cancel()
	return nil
}
