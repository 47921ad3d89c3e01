// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// frameOf returns n messages of size bytes and three headers each.
func frameOf(n, size int) []Delivery {
	items := make([]Delivery, n)
	for i := range items {
		items[i] = Delivery{ID: uint64(i + 1), Message: core.Message{Name: "orders.created", Payload: make([]byte, size), Headers: core.Headers{
			{Name: "content-type", Value: []byte("application/json")},
			{Name: "x-request-id", Value: []byte("4bf92f3577b34da6a3ce929d0e0e4736")},
			{Name: "partition-key", Value: []byte("customer-1234")},
		}}}
	}
	return items
}

// wireOf returns the wire form of a frame.
func wireOf(t testing.TB, items []Delivery) []byte {
	var e SubscribeResponseEncoder
	if f := e.Reset(&SubscribeResponse{Deliveries: &Deliveries{Items: items}}); f != nil {
		t.Fatal(f)
	}
	bs := encode(t, &e)
	if len(bs) != 1 {
		t.Fatalf("got %d wire messages, want 1", len(bs))
	}
	return bs[0]
}

func TestFrameIsReadWithoutMemoryOfItsOwn(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and sync.Pool forgets on purpose under it")
	}
	for _, n := range []int{64, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			wire := wireOf(t, frameOf(n, 512))
			var r SubscribeResponse
			allocs := testing.AllocsPerRun(200, func() {
				if err := DecodeSubscribeResponse(slabOf(wire), &r); err != nil {
					t.Fatal(err)
				}
				r.Deliveries.Release()
			})
			if per := allocs / float64(n); per > 0.1 {
				t.Errorf("reading takes %.2f allocations a delivery", per)
			}
		})
	}
}

func TestFrameIsWrittenWithoutMemoryOfItsOwn(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and sync.Pool forgets on purpose under it")
	}
	items := frameOf(64, 512)
	var e SubscribeResponseEncoder
	allocs := testing.AllocsPerRun(200, func() {
		d := NewDeliveries()
		d.Items = append(d.Items, items...)
		if f := e.Reset(&SubscribeResponse{Deliveries: d}); f != nil {
			t.Fatal(f)
		}
		for e.Next() {
			b := Pool{}.Get(e.Size())
			e.Append((*b)[:0])
			Pool{}.Put(b)
		}
		d.Release()
	})
	if per := allocs / float64(len(items)); per > 0.1 {
		t.Errorf("writing takes %.2f allocations a delivery", per)
	}
}

func TestVerdictsAreReadWithoutMemoryOfTheirOwn(t *testing.T) {
	runs := make([]VerdictRun, 64)
	for i := range runs {
		runs[i] = VerdictRun{First: uint64(i + 1), Count: 1, Kind: core.VerdictAck}
	}
	var e SubscribeRequestEncoder
	e.Reset(&SubscribeRequest{Settle: runs})
	wire := encode(t, &e)[0]
	var d SubscribeRequestDecoder
	var r SubscribeRequest
	allocs := testing.AllocsPerRun(200, func() {
		if err := d.Decode(wire, &r); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("reading takes %v allocations a frame", allocs)
	}
}

func TestLimitsCutFrames(t *testing.T) {
	tests := []struct {
		name  string
		items []Delivery
		want  []int
	}{
		{"nothing", nil, nil},
		{"lone message", frameOf(1, 10), []int{1}},
		{"items", frameOf(600, 1), []int{256, 256, 88}},
		{"bytes", frameOf(40, 16<<10), []int{7, 7, 7, 7, 7, 5}},
		{"larger than a frame", append(append(frameOf(1, 10), frameOf(1, 200<<10)...), frameOf(1, 10)...), []int{1, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var e SubscribeResponseEncoder
			if f := e.Reset(&SubscribeResponse{Deliveries: &Deliveries{Items: test.items}}); f != nil {
				t.Fatal(f)
			}
			var got []int
			for _, b := range encode(t, &e) {
				g := &pb.SubscribeResponse{}
				if err := proto.Unmarshal(b, g); err != nil {
					t.Fatal(err)
				}
				got = append(got, len(g.GetDeliveries().Items))
				if len(b) > MaxBytes+wrapping && len(g.GetDeliveries().Items) > 1 {
					t.Errorf("frame of %d bytes", len(b))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got frames of %v, want %v", got, test.want)
			}
		})
	}
}

func TestManyRunsAreCut(t *testing.T) {
	var e SubscribeRequestEncoder
	if f := e.Reset(&SubscribeRequest{Settle: make([]VerdictRun, 2*MaxEntries+1)}); f != nil {
		t.Fatal(f)
	}
	var d SubscribeRequestDecoder
	total := 0
	for _, b := range encode(t, &e) {
		var r SubscribeRequest
		if err := d.Decode(b, &r); err != nil {
			t.Fatal(err)
		}
		total += len(r.Settle)
	}
	if total != 2*MaxEntries+1 {
		t.Errorf("got %d runs", total)
	}
}

// TestLimits is L-06: sizes are refused by name before anything is sent.
func TestLimits(t *testing.T) {
	header := func(n, size int) core.Headers {
		hs := make(core.Headers, n)
		for i := range hs {
			hs[i] = core.Header{Name: "h", Value: make([]byte, size)}
		}
		return hs
	}
	tests := []struct {
		name    string
		message core.Message
		want    core.FaultCode
	}{
		{"at the limit", core.Message{Payload: make([]byte, MaxPayload)}, core.FaultUnspecified},
		{"one over", core.Message{Payload: make([]byte, MaxPayload+1)}, core.FaultTooLarge},
		{"headers count", core.Message{Payload: make([]byte, MaxPayload-1), Headers: header(1, 1)}, core.FaultTooLarge},
		{"too many headers", core.Message{Headers: header(MaxHeaders+1, 0)}, core.FaultTooLarge},
		{"name is no text", core.Message{Name: "\xff"}, core.FaultInvalid},
		{"header name is no text", core.Message{Headers: core.Headers{{Name: "\xff"}}}, core.FaultInvalid},
		{"header value is no text", core.Message{Headers: core.Headers{{Name: "a", Value: []byte{0xff}}}}, core.FaultUnspecified},
		{"name over the wire size", core.Message{Name: strings.Repeat("n", MaxWireSize)}, core.FaultTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := Outgoing{Message: test.message}
			f := o.Check()
			if f == nil {
				f = &core.Fault{}
			}
			if f.Code != test.want {
				t.Errorf("got %v %q, want %v", f.Code, f.Message, test.want)
			}
			var e PublishEncoder
			refused := e.Reset([]Outgoing{{}, o})
			if (refused != nil) != (test.want == core.FaultTooLarge) {
				t.Errorf("encoder says %v", refused)
			}
		})
	}
}

func TestHolders(t *testing.T) {
	wire := wireOf(t, frameOf(3, 100))
	var r SubscribeResponse
	if err := DecodeSubscribeResponse(slabOf(wire), &r); err != nil {
		t.Fatal(err)
	}
	d := r.Deliveries
	d.Retain(2)
	d.Release()
	d.Release()
	if got := d.Items[2].Message.Name; got != "orders.created" {
		t.Errorf("held frame says %q", got)
	}
	name, payload := d.Items[2].Message.Name, d.Items[2].Message.Payload
	before := bytes.Clone(payload)
	d.Release()
	if raceEnabled && bytes.Equal(payload, before) {
		t.Error("a use after release does not show")
	}
	if name != "orders.created" {
		t.Errorf("a name that was kept became %q", name)
	}
	mustPanic(t, "released twice", func() { (&Deliveries{}).Release() })
	mustPanic(t, "retained after release", func() { (&Publishes{}).Retain(1) })
}

func TestCutFramesShareMemory(t *testing.T) {
	d := NewDeliveries()
	d.Items = append(d.Items, frameOf(2*MaxItems+1, 10)...)
	frames := d.Cut()
	var got []int
	for _, f := range frames {
		got = append(got, len(f.Items))
		f.Release()
	}
	if fmt.Sprint(got) != "[256 256 1]" {
		t.Errorf("got frames of %v", got)
	}
	if n := d.store.holders.Load(); n != 0 {
		t.Errorf("the cut frame has %d holders behind its parts", n)
	}
	if got := NewPublishes().Cut(); got != nil {
		t.Errorf("an empty frame was cut into %v", got)
	}
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	f()
}

func TestPoolKeepsNothingLarge(t *testing.T) {
	for _, n := range []int{0, 1, 2 << 10, 128<<10 + 1, 1 << 20, 1<<20 + 1, 5 << 20} {
		b := Pool{}.Get(n)
		if len(*b) != n {
			t.Errorf("asked for %d bytes, got %d", n, len(*b))
		}
		if c := cap(*b); c > 1<<20 && c != n {
			t.Errorf("asked for %d bytes, got a capacity of %d", n, c)
		}
		Pool{}.Put(b)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 64, 190} {
		wire := wireOf(b, frameOf(n, 512))
		b.Run(fmt.Sprintf("frame=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			var r SubscribeResponse
			for b.Loop() {
				if err := DecodeSubscribeResponse(slabOf(wire), &r); err != nil {
					b.Fatal(err)
				}
				r.Deliveries.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{1, 64, 190} {
		items := frameOf(n, 512)
		b.Run(fmt.Sprintf("frame=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			r := &SubscribeResponse{Deliveries: &Deliveries{Items: items}}
			var e SubscribeResponseEncoder
			for b.Loop() {
				if f := e.Reset(r); f != nil {
					b.Fatal(f)
				}
				for e.Next() {
					buf := Pool{}.Get(e.Size())
					e.Append((*buf)[:0])
					Pool{}.Put(buf)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}
