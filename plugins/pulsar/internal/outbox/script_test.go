// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// script is a broker of one topic that answers messages as a test says.
type script struct {
	tb testing.TB
	ln net.Listener
	// sent is called for each SEND and returns why it fails, or one of those below.
	// Attempts are counted by number.
	sent func(number uint64, attempt int) wire.ServerError
	// produce answers a PRODUCER in place of a PRODUCER_SUCCESS, nil = that.
	produce func(request uint64, attempt int) []byte
	// look answers a look-up in place of what it is to hear, nil = that.
	look func(kind wire.Type, request uint64, attempt int) []byte
	// closes reports whether the producer is closed right behind the receipt of a number.
	closes func(number uint64, attempt int) bool

	mu        sync.Mutex
	attempts  map[uint64]int
	looks     map[wire.Type]int
	producers []map[protowire.Number]any // the PRODUCERs that have come
	got       []string                   // what was confirmed
	running   sync.WaitGroup
}

// What becomes of a message that does not fail.
const (
	stored wire.ServerError = -1
	silent wire.ServerError = -2 // there is no answer
	known  wire.ServerError = -3 // the broker has one of that number
)

func play(t *testing.T, s *script) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.tb, s.ln, s.attempts, s.looks = t, ln, make(map[uint64]int), make(map[wire.Type]int)
	conns := make(chan net.Conn, 100)
	s.running.Go(func() {
		defer close(conns)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- nc
			s.running.Go(func() { s.serve(nc) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		for nc := range conns {
			nc.Close()
		}
		s.running.Wait()
	})
	return s
}

func (s *script) url() string { return "pulsar://" + s.ln.Addr().String() }

func (s *script) serve(nc net.Conn) {
	r := bufio.NewReader(nc)
	for {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(b)
		if answer := s.answer(parsed(b[4:4+n]), b[4+n:]); answer != nil {
			if _, err := nc.Write(answer); err != nil {
				return
			}
		}
	}
}

// answer answers a command.
func (s *script) answer(command map[protowire.Number]any, payload []byte) []byte {
	kind := wire.Type(command[1].(uint64))
	body, _ := command[protowire.Number(kind)].([]byte)
	f := parsed(body)
	number := func(n protowire.Number) uint64 { v, _ := f[n].(uint64); return v }
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == wire.TypePartitions || kind == wire.TypeLookup {
		if s.looks[kind]++; s.look != nil {
			if b := s.look(kind, number(2), s.looks[kind]); b != nil {
				return b
			}
		}
	}
	switch kind {
	case wire.TypeConnect:
		return reply(wire.TypeConnected, "test", uint64(19))
	case wire.TypePing:
		return reply(wire.TypePong)
	case wire.TypePartitions:
		return reply(wire.TypePartitionsResponse, uint64(0), number(2), uint64(0))
	case wire.TypeLookup:
		return reply(wire.TypeLookupResponse, s.url(), nil, uint64(1), number(2), uint64(1))
	case wire.TypeCloseProducer:
		return reply(wire.TypeSuccess, number(2))
	case wire.TypeProducer:
		s.producers = append(s.producers, f)
		if s.produce != nil {
			if b := s.produce(number(3), len(s.producers)); b != nil {
				return b
			}
		}
		return reply(wire.TypeProducerSuccess, number(3), "given")
	case wire.TypeSend:
		s.attempts[number(2)]++
		switch code := s.sent(number(2), s.attempts[number(2)]); code {
		case silent:
		case known:
			return reply(wire.TypeSendReceipt, number(1), number(2), encode(uint64(math.MaxUint64), uint64(math.MaxUint64)))
		case stored:
			s.got = append(s.got, string(payload[len(payload)-1:]))
			b := reply(wire.TypeSendReceipt, number(1), number(2), encode(uint64(1), number(2)))
			if s.closes != nil && s.closes(number(2), s.attempts[number(2)]) {
				b = append(b, reply(wire.TypeCloseProducer, number(1), uint64(1))...)
			}
			return b
		default:
			return reply(wire.TypeSendError, number(1), number(2), uint64(code), "over")
		}
	}
	return nil
}

// reply is a frame with a command of these fields, from 1 on; nil = left out.
func reply(kind wire.Type, fields ...any) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(kind))
	b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(kind), protowire.BytesType), encode(fields...))
	f := binary.BigEndian.AppendUint32(nil, uint32(len(b)+4))
	return append(binary.BigEndian.AppendUint32(f, uint32(len(b))), b...)
}

func encode(fields ...any) (b []byte) {
	for i, v := range fields {
		n := protowire.Number(i + 1)
		switch v := v.(type) {
		case uint64:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		}
	}
	return b
}

// parsed is the fields of a message: numbers and bytes.
func parsed(b []byte) map[protowire.Number]any {
	f := make(map[protowire.Number]any)
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return f
		}
		b = b[size:]
		if kind == protowire.VarintType {
			f[n], size = protowire.ConsumeVarint(b)
		} else {
			f[n], size = protowire.ConsumeBytes(b)
		}
		if size < 0 {
			return f
		}
		b = b[size:]
	}
	return f
}

// What a broker cannot store now is sent again, in order and under the same name and
// numbers, by a producer that the broker takes for a later one.
func TestFailedMessagesAreSentAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []wire.ServerError{wire.PersistenceError, wire.ServiceNotReady, wire.UnknownError} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			down := false
			s := play(t, &script{sent: func(number uint64, attempt int) wire.ServerError {
				if down = down && attempt == 1 || number == 2 && attempt == 1; down {
					return code
				}
				return stored
			}})
			k := openAt(t, s.url())
			r := newReceipts(t)
			for i := range 5 {
				if f := k.post(r, i, "t", fmt.Sprint(i)); f != nil {
					t.Fatal(f)
				}
			}
			r.confirmed(5)
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := fmt.Sprint(s.got); got != "[0 1 2 3 4]" {
				t.Errorf("stored: %s", got)
			}
			if len(s.producers) != 2 {
				t.Fatalf("%d producers", len(s.producers))
			}
			again := s.producers[1]
			if name, epoch, users := again[4], again[8], again[9]; string(name.([]byte)) != "given" || epoch != uint64(1) || users != uint64(0) {
				t.Errorf("the second producer has name %q, epoch %v, of the user %v", name, epoch, users)
			}
		})
	}
}

// What a broker never takes is refused at once, unless it was written before: then
// the broker may have stored it. What is behind it goes on.
func TestMessagesNotTaken(t *testing.T) {
	t.Parallel()
	for _, code := range []wire.ServerError{
		wire.NotAllowedError, wire.TopicTerminatedError, wire.MetadataError, wire.ProducerFenced, wire.ChecksumError,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			s := play(t, &script{sent: func(number uint64, attempt int) wire.ServerError {
				switch {
				case number == 1, number == 3 && attempt == 2:
					return code
				case number == 3:
					return wire.PersistenceError
				}
				return stored
			}})
			k := openAt(t, s.url())
			r := newReceipts(t)
			for i := range 5 {
				if f := k.post(r, i, "t", fmt.Sprint(i)); f != nil {
					t.Fatal(f)
				}
			}
			for i, x := range r.await(5) {
				want := []pluginapi.ReceiptStatus{
					pluginapi.ReceiptConfirmed, pluginapi.ReceiptRefused, pluginapi.ReceiptConfirmed, pluginapi.ReceiptUnknown, pluginapi.ReceiptConfirmed,
				}[i]
				if x.Status != want {
					t.Errorf("message %d: %v, %+v", i, x.Status, x.Fault)
				}
			}
		})
	}
}

// A refusal of the producer that stands is the receipt at once, of each with its own
// reason; one that passes is tried again.
func TestProducerRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code      wire.ServerError
		want      core.FaultCode // 0 = it passes
		transient bool
	}{
		{wire.ProducerBlockedQuotaExceededError, core.FaultExhausted, true},
		{wire.ProducerBlockedQuotaExceededException, core.FaultExhausted, true},
		{wire.TopicTerminatedError, core.FaultClosed, false},
		{wire.NotAllowedError, core.FaultUnsupported, false},
		{wire.ProducerFenced, core.FaultConflict, false},
		{wire.ProducerBusy, core.FaultConflict, true},
		{wire.TopicNotFound, core.FaultNotFound, false},
		{wire.AuthorizationError, core.FaultDenied, false},
		{wire.ServiceNotReady, 0, true},
		{wire.MetadataError, 0, true},
	} {
		t.Run(tt.code.String(), func(t *testing.T) {
			t.Parallel()
			s := play(t, &script{
				sent: func(uint64, int) wire.ServerError { return stored },
				produce: func(request uint64, attempt int) []byte {
					if attempt == 1 {
						return reply(wire.TypeError, request, uint64(tt.code), "no")
					}
					return nil
				},
			})
			k := openAt(t, s.url())
			first := k.one("t", "x")
			switch {
			case tt.want == 0 && first.Status != pluginapi.ReceiptConfirmed:
				t.Errorf("%v, %+v", first.Status, first.Fault)
			case tt.want != 0 && (first.Status != pluginapi.ReceiptRefused || first.Fault.Code != tt.want || first.Fault.Transient != tt.transient):
				t.Errorf("%v, %+v", first.Status, first.Fault)
			}
			if x := k.one("t", "x"); x.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("the next one: %v, %+v", x.Status, x.Fault)
			}
		})
	}
}

// A message that the broker never answers is given up in its time, and those behind
// it are refused until the broker answers anything; a producer that is to take its
// place is not sent it.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s := play(t, &script{sent: func(number uint64, _ int) wire.ServerError {
		if number == 1 {
			return silent
		}
		return stored
	}})
	k := openAt(t, s.url(), timeout(hasty))
	k.warm("t")
	if x := k.one("t", "a"); x.Status != pluginapi.ReceiptUnknown || x.Fault.Code != core.FaultTimeout {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
	k.warm("t")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[1] != 1 || len(s.producers) != 2 {
		t.Errorf("it was sent %d times, by %d producers", s.attempts[1], len(s.producers))
	}
}

// Where somebody else has published under the name meanwhile, a broker with
// deduplication takes what is sent again for what it has: it is not sent.
func TestNameUsedByAnother(t *testing.T) {
	t.Parallel()
	s := play(t, &script{
		sent: func(number uint64, _ int) wire.ServerError {
			if number == 1 {
				return wire.PersistenceError
			}
			return stored
		},
		produce: func(request uint64, attempt int) []byte {
			if attempt == 2 {
				return reply(wire.TypeProducerSuccess, request, "given", uint64(50))
			}
			return nil
		},
	})
	k := openAt(t, s.url())
	k.warm("t")
	if x := k.one("t", "a"); x.Status != pluginapi.ReceiptUnknown || x.Fault.Code != core.FaultConflict {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
	k.warm("t")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[1] != 1 || s.attempts[51] != 1 {
		t.Errorf("attempts by number: %v", s.attempts)
	}
}

// Nothing is written to a producer that the broker has closed, not even in place of
// what it has confirmed just before.
func TestNothingBehindTheClose(t *testing.T) {
	t.Parallel()
	s := play(t, &script{
		sent:   func(uint64, int) wire.ServerError { return stored },
		closes: func(number uint64, _ int) bool { return number == 1 },
	})
	k := openAt(t, s.url(), func(c *outbox.Config) { c.Window = 1 })
	r := newReceipts(t)
	for i := range 4 {
		if f := k.post(r, i, "t", fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	r.confirmed(4)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[2] != 1 || len(s.producers) != 2 {
		t.Errorf("attempts by number: %v, by %d producers", s.attempts, len(s.producers))
	}
}

// A broker that has too much to look up is asked again.
func TestTooManyLookUps(t *testing.T) {
	t.Parallel()
	for kind, answer := range map[wire.Type]func(request uint64) []byte{
		wire.TypePartitions: func(request uint64) []byte {
			return reply(wire.TypePartitionsResponse, nil, request, uint64(1), uint64(wire.TooManyRequests), "many")
		},
		wire.TypeLookup: func(request uint64) []byte {
			return reply(wire.TypeLookupResponse, nil, nil, uint64(2), request, nil, uint64(wire.TooManyRequests), "many")
		},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s := play(t, &script{
				sent: func(uint64, int) wire.ServerError { return stored },
				look: func(asked wire.Type, request uint64, attempt int) []byte {
					if asked == kind && attempt == 1 {
						return answer(request)
					}
					return nil
				},
			})
			if x := openAt(t, s.url()).one("t", "x"); x.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("%v, %+v", x.Status, x.Fault)
			}
		})
	}
}

// Messages that were given up before their batch was to be written leave nothing
// behind that the next ones wait for.
func TestBatchBehindOneGivenUp(t *testing.T) {
	t.Parallel()
	const delay, limit = 3 * time.Second, 5 * time.Second
	s := play(t, &script{
		sent: func(uint64, int) wire.ServerError { return stored },
		look: func(kind wire.Type, _ uint64, attempt int) []byte {
			if kind == wire.TypePartitions && attempt == 1 {
				time.Sleep(limit - delay/2) // a slow broker
			}
			return nil
		},
	})
	k := openAt(t, s.url(), timeout(limit), func(c *outbox.Config) { c.Batch, c.BatchMessages = delay, 100 })
	if x := k.one("t", "a"); x.Status != pluginapi.ReceiptRefused {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
	k.warm("u") // that takes longer than the first batch had left
	if x := k.one("t", "b"); x.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
}

// A topic's policies may let a message be smaller than a batch is: what was refused
// with its batch can be published again, and goes by itself then.
func TestBatchNotTaken(t *testing.T) {
	t.Parallel()
	s := play(t, &script{sent: func(number uint64, _ int) wire.ServerError {
		if number == 0 {
			return wire.NotAllowedError
		}
		return stored
	}})
	const n = 3
	k := openAt(t, s.url(), func(c *outbox.Config) { c.Batch, c.BatchMessages = time.Hour, n })
	for range 2 {
		r := newReceipts(t)
		for i := range n {
			if f := k.post(r, i, "t", fmt.Sprint(i)); f != nil {
				t.Fatal(f)
			}
		}
		for i, x := range r.await(n) {
			s.mu.Lock()
			again := len(s.attempts) > 1
			s.mu.Unlock()
			if again && x.Status != pluginapi.ReceiptConfirmed || !again && (x.Status != pluginapi.ReceiptRefused || !x.Fault.Transient) {
				t.Errorf("message %d: %v, %+v", i, x.Status, x.Fault)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := fmt.Sprint(s.attempts); got != "map[0:1 3:1 4:1 5:1]" {
		t.Errorf("attempts by number: %s", got)
	}
}

// A number that a message without one was given is no number of the sender's: the broker
// drops the sender's message, which is refused. One that the sender has given before is
// confirmed.
func TestNumbersMixed(t *testing.T) {
	t.Parallel()
	s := play(t, &script{sent: func(_ uint64, attempt int) wire.ServerError {
		if attempt > 1 {
			return known
		}
		return stored
	}})
	k := openAt(t, s.url(), func(c *outbox.Config) { c.Name = "name" })
	confirmed, refused := pluginapi.ReceiptConfirmed, pluginapi.ReceiptRefused
	for i, tt := range []struct {
		number int64 // -1 = none
		want   pluginapi.ReceiptStatus
	}{{10, confirmed}, {-1, confirmed}, {10, confirmed}, {11, refused}, {11, refused}, {12, confirmed}, {-1, confirmed}, {14, confirmed}} {
		m := wire.Outgoing{Payload: []byte("x")}
		if tt.number >= 0 {
			m.Sequence = &tt.number
		}
		r := newReceipts(t)
		if f := k.send(r, 0, "t", m); f != nil {
			t.Fatal(f)
		}
		if x := r.await(1)[0]; x.Status != tt.want {
			t.Errorf("message %d, of number %d: %v, %+v", i, tt.number, x.Status, x.Fault)
		}
	}
}

// A message that compression would make too large goes as it is.
func TestGrowsByCompression(t *testing.T) {
	t.Parallel()
	payload := make([]byte, 5<<20-1000)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(payload)
	for _, c := range []wire.Compression{wire.LZ4, wire.ZLib, wire.ZSTD} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			s := play(t, &script{sent: func(uint64, int) wire.ServerError { return stored }})
			k := openAt(t, s.url(), func(o *outbox.Config) { o.Compression = c })
			r := newReceipts(t)
			if f := k.send(r, 0, "t", wire.Outgoing{Payload: payload}); f != nil {
				t.Fatal(f)
			}
			r.confirmed(1)
		})
	}
}

// A broker that has not heard yet that a producer is gone says that its name is taken: that
// passes, however long the producer has had nothing to do.
func TestNameTakenAfterLongRest(t *testing.T) {
	t.Parallel()
	s := play(t, &script{
		sent:   func(uint64, int) wire.ServerError { return stored },
		closes: func(number uint64, _ int) bool { return number == 0 },
		produce: func(request uint64, attempt int) []byte {
			if attempt == 2 {
				return reply(wire.TypeError, request, uint64(wire.ProducerBusy), "taken")
			}
			return nil
		},
	})
	k := openAt(t, s.url(), func(c *outbox.Config) { c.Name = "name" })
	k.warm("t")
	k.box.AwaitDown(t)
	k.box.Later()
	if x := k.one("t", "x"); x.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
}
