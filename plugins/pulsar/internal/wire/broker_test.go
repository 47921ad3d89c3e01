// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/tcpproxy"
)

// wait is how long a broker has for an answer.
const wait = pulsarbroker.Limit

// library is the client library, which is independent of this package.
func library(t *testing.T, url string) pulsar.Client {
	t.Helper()
	c, err := pulsar.NewClient(pulsar.ClientOptions{URL: url, Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// recorder keeps the SEND commands that pass.
type recorder struct {
	mu    sync.Mutex
	sends [][]byte
}

// read is a tcpproxy.Protocol: lookups lead to the proxy again.
func (r *recorder) read(from *bufio.Reader, own string) ([]byte, int, error) {
	head := make([]byte, headerBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, 0, err
	}
	whole := append(head, make([]byte, int(binary.BigEndian.Uint32(head))-sizeBytes)...)
	if _, err := io.ReadFull(from, whole[headerBytes:]); err != nil {
		return nil, 0, err
	}
	f, err := NewReader(bytes.NewReader(whole)).Next()
	if err != nil {
		return nil, 0, err
	}
	switch f.Type {
	case TypeLookupResponse:
		whole = framed(append(bytes.Clone(f.Command), appendBytes(nil, 24, appendText(nil, 1, "pulsar://"+own))...))
	case TypeSend:
		r.mu.Lock()
		r.sends = append(r.sends, whole)
		r.mu.Unlock()
	}
	return whole, int(f.Type), nil
}

// What the library sends is what is written here, byte for byte where both compress by
// the same code, and is read as it was given to it.
func TestLibrarySends(t *testing.T) {
	b := broker.Broker(t)
	for kind, compression := range map[Compression]pulsar.CompressionType{
		NoCompression: pulsar.NoCompression, LZ4: pulsar.LZ4, ZLib: pulsar.ZLib, ZSTD: pulsar.ZSTD, Snappy: pulsar.SNAPPY,
	} {
		for _, batched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, batched %t", kind, batched), func(t *testing.T) {
				var r recorder
				p := tcpproxy.Start(t, b.Address(), r.read)
				producer, err := library(t, "pulsar://"+p.Address()).CreateProducer(pulsar.ProducerOptions{
					Topic: fmt.Sprintf("sends-%v-%t", kind, batched), CompressionType: compression,
					DisableBatching: !batched, BatchingMaxMessages: 3, BatchingMaxPublishDelay: wait,
					SendTimeout: -1, // else it leaves a goroutine behind for as long
				})
				if err != nil {
					t.Fatal(err)
				}
				payload := bytes.Repeat([]byte("longshore "), 60)
				defer producer.Close()
				var sent sync.WaitGroup
				for i := range 3 {
					sent.Add(1)
					producer.SendAsync(t.Context(), &pulsar.ProducerMessage{
						Key: "k", OrderingKey: "o", EventTime: time.UnixMilli(1234), Payload: payload[i:], Properties: map[string]string{"a": "b"},
					}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
						if err != nil {
							t.Error(err)
						}
						sent.Done()
					})
				}
				if err := producer.FlushWithCtx(t.Context()); err != nil { // a batch that is full waits for the next message
					t.Error(err)
				}
				sent.Wait()
				r.mu.Lock()
				defer r.mu.Unlock()
				var got []Message
				for i, frame := range r.sends {
					if got, err = delivered(payloadOf(frame)).Messages(got); err != nil {
						t.Fatal(err)
					}
					if batched || kind == ZSTD {
						continue
					}
					m := Outgoing{Key: "k", OrderingKey: "o", EventTime: 1234, Payload: payload[i:], Properties: []OutgoingProperty{{"a", []byte("b")}}}
					s := headOf(t, frame)
					s.Compression = kind
					if ours := AppendSend(nil, &s, &m); !bytes.Equal(ours, frame) {
						t.Errorf("it sends   %x\nin place of %x", frame, ours)
					}
				}
				if len(got) != 3 {
					t.Fatalf("got %d messages", len(got))
				}
				for i, m := range got {
					want := Message{
						ID: MessageID{3, 4, NoBatch, 0}, Redelivered: 5, Key: []byte("k"), OrderingKey: []byte("o"), PublishTime: m.PublishTime,
						EventTime: 1234, Properties: []Property{{[]byte("a"), []byte("b")}}, Payload: payload[i:],
					}
					if batched {
						want.ID.Batch, want.ID.Size = int32(i), 3
					}
					if diff := cmp.Diff(want, m, cmp.Comparer(bytes.Equal)); diff != "" {
						t.Errorf("message %d:\n%s", i, diff)
					}
				}
			})
		}
	}
}

// headOf is what was said by who sent a frame.
func headOf(t *testing.T, frame []byte) (of Send) {
	t.Helper()
	f, err := NewReader(bytes.NewReader(frame)).Next()
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.body(TypeSend)
	if err != nil {
		t.Fatal(err)
	}
	for s.next() {
		if s.number == 1 {
			of.Producer = s.varint
		}
	}
	head, _, _ := cut(f.Payload[magicBytes+sumBytes:])
	for s := (scan{b: head}); s.next(); {
		switch s.number {
		case 1:
			of.Name = string(s.bytes)
		case 2:
			of.Sequence = s.varint
		case 3:
			of.PublishTime = s.int64()
		}
	}
	return of
}

// wired is a connection to a broker.
type wired struct {
	t  *testing.T
	nc net.Conn
	r  *Reader
}

func dial(t *testing.T, b *pulsarbroker.Broker) *wired {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(wait))
	w := &wired{t, nc, NewReader(nc)}
	w.write(AppendConnect(nil, "longshore test", Auth{}, ""))
	if c := w.command(TypeConnected); c.Protocol < ProtocolVersion || c.MaxMessageSize <= 0 {
		t.Fatalf("CONNECTED says %+v", c)
	}
	return w
}

func (w *wired) write(b []byte) {
	w.t.Helper()
	if _, err := w.nc.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// next is the next frame that is no PING; what comes is answered, or wrong.
func (w *wired) next(want Type) Frame {
	w.t.Helper()
	for {
		f, err := w.r.Next()
		switch {
		case err != nil:
			w.t.Fatal(err)
		case f.Type == TypePing:
			w.write(AppendPong(nil))
		case f.Type == want:
			return f
		default:
			c, err := f.Parse()
			w.t.Fatalf("got %+v, %v; want %v", c, err, want)
		}
	}
}

func (w *wired) command(want Type) Command {
	w.t.Helper()
	f := w.next(want)
	c, err := f.Parse()
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// ask sends a request of number 7 and returns its answer.
func (w *wired) ask(request []byte, want Type) Command {
	w.t.Helper()
	w.write(request)
	c := w.command(want)
	if c.Failed || c.Request != 7 {
		w.t.Fatalf("got %+v", c)
	}
	return c
}

// messages are those of the next MESSAGE.
func (w *wired) messages(d *Delivery) []Message {
	w.t.Helper()
	f := w.next(TypeMessage)
	if err := f.Delivery(d); err != nil {
		w.t.Fatal(err)
	}
	got, err := d.Messages(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// A broker takes what is written here, passes it on to the library, and sends it back
// as it was.
func TestBroker(t *testing.T) {
	b := broker.Broker(t)
	const topic = "persistent://public/default/wire"
	w := dial(t, b)
	if c := w.ask(AppendPartitions(nil, 7, topic, true), TypePartitionsResponse); c.Partitions != 0 {
		t.Errorf("it has %d partitions", c.Partitions)
	}
	if c := w.ask(AppendLookup(nil, 7, topic, false, ""), TypeLookupResponse); c.Broker == "" || c.Redirect {
		t.Errorf("the lookup says %+v", c)
	}
	consumer, err := library(t, b.PlainURL()).Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "library", Type: pulsar.Shared})
	if err != nil {
		t.Fatal(err)
	}
	w.ask(AppendSubscribe(nil, 7, Subscribe{ID: 1, Topic: topic, Subscription: "wire", Name: "w", Type: Shared, Earliest: true}), TypeSuccess)
	opened := w.ask(AppendProducer(nil, 7, Producer{ID: 2, Topic: topic}), TypeProducerSuccess)
	if opened.Name == "" || opened.LastSequence != -1 {
		t.Errorf("the producer is %+v", opened)
	}

	var want []Outgoing
	for kind := NoCompression; kind <= Snappy; kind++ {
		s := Send{Producer: 2, Sequence: uint64(kind) * 10, Name: opened.Name, PublishTime: time.Now().UnixMilli(), Compression: kind}
		message := func(n int) Outgoing {
			return Outgoing{
				Key: "k", OrderingKey: "o", EventTime: 1234 + int64(n), Payload: bytes.Repeat([]byte(fmt.Sprintf("%v %d ", kind, n)), 50),
				Properties: []OutgoingProperty{{"a", []byte("b")}},
			}
		}
		var batch Batch
		for n := range 4 {
			m := message(n)
			want = append(want, m)
			if n == 0 {
				w.write(AppendSend(nil, &s, &m))
			} else {
				batch.Add(&m)
			}
		}
		first := s.Sequence
		s.Sequence++
		w.write(batch.AppendSend(nil, &s))
		for _, number := range []uint64{first, first + 1} {
			f := w.next(TypeSendReceipt)
			r, err := f.Receipt()
			if err != nil || r.Producer != 2 || r.Sequence != number || r.Ledger < 0 || r.Entry < 0 {
				t.Fatalf("the receipt of %d is %+v, %v", number, r, err)
			}
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	for i, m := range want {
		got, err := consumer.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got.Key() != "k" || got.OrderingKey() != "o" || got.EventTime().UnixMilli() != m.EventTime || !bytes.Equal(got.Payload(), m.Payload) || !cmp.Equal(got.Properties(), map[string]string{"a": "b"}) {
			t.Errorf("the library has received message %d as %v %v %q", i, got.Key(), got.Properties(), got.Payload())
		}
	}

	w.write(AppendFlow(nil, 1, 100))
	var got []Message
	var d Delivery
	for len(got) < len(want) {
		got = append(got, w.messages(&d)...)
	}
	for i, m := range got {
		if string(m.Key) != "k" || string(m.OrderingKey) != "o" || m.EventTime != want[i].EventTime || !bytes.Equal(m.Payload, want[i].Payload) || len(m.Properties) != 1 {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if last := w.ask(AppendLastID(nil, 7, 1), TypeLastIDResponse).LastID; last.Ledger != d.Ledger || last.Entry != d.Entry {
		t.Errorf("the last message is %v; want %d:%d", last, d.Ledger, d.Entry)
	}

	// All are acked but two of the last batch, which come again, and then alone.
	var acks []Acked
	for _, m := range got[:len(got)-3] {
		if m.ID.Batch == NoBatch || m.ID.Batch == 0 {
			acks = append(acks, Acked{Ledger: m.ID.Ledger, Entry: m.ID.Entry})
		}
	}
	acks = append(acks, Acked{Ledger: d.Ledger, Entry: d.Entry, Left: []uint64{0b101}, Size: 3})
	w.ask(AppendAck(nil, 7, 1, acks), TypeAckResponse)
	w.write(AppendRedeliver(nil, 1, []MessageID{got[len(got)-1].ID, got[len(got)-3].ID}))
	again := w.messages(&d)
	if len(again) != 2 || again[0].ID.Batch != 0 || again[1].ID.Batch != 2 || again[0].Redelivered != 1 || d.Count != 3 || len(d.Left) == 0 {
		t.Errorf("what comes again is %v, %d of %d", again, len(again), d.Count)
	}

	// What was acked of it takes none of the permits.
	if permits := b.Stats(topic).Subscriptions["wire"].Consumers[0].Permits; permits != int64(100-len(want)-2) {
		t.Errorf("%d permits are left", permits)
	}

	w.ask(AppendCloseProducer(nil, 7, 2), TypeSuccess)
	w.ask(AppendCloseConsumer(nil, 7, 1), TypeSuccess)
	for name, seek := range map[string][]byte{
		"entry": AppendSeek(nil, 7, 3, got[1].ID.Ledger, got[1].ID.Entry),
		"time":  AppendSeekTime(nil, 7, 3, 1),
	} {
		w := dial(t, b)
		w.ask(AppendSubscribe(nil, 7, Subscribe{ID: 3, Topic: topic, Subscription: "wire", Type: Exclusive}), TypeSuccess)
		w.write(seek)
		if c := w.command(TypeCloseConsumer); c.Consumer != 3 {
			t.Errorf("it closes %+v", c)
		}
		if c := w.command(TypeSuccess); c.Request != 7 {
			t.Errorf("the seek is answered by %+v", c)
		}
		w.ask(AppendSubscribe(nil, 7, Subscribe{ID: 4, Topic: topic, Subscription: "wire", Type: Exclusive}), TypeSuccess)
		w.write(AppendFlow(nil, 4, 1))
		first := w.messages(&d)[0]
		if to := map[string]int{"entry": 1, "time": 0}[name]; first.ID != got[to].ID {
			t.Errorf("behind a seek to the %s comes %v; want %v", name, first.ID, got[to].ID)
		}
		w.ask(AppendCloseConsumer(nil, 7, 4), TypeSuccess)
	}
}
