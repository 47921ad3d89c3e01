// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// SubscribeResponseEncoder writes a SubscribeResponse in as many wire messages
// as the limits ask for: Reset, then Size and Append after each Next that is
// true.
type SubscribeResponseEncoder struct {
	deliveries cutter[Delivery]
	settled    cutter[SettleResult]
	items      []Delivery     // of this wire message
	results    []SettleResult // likewise
	content    int            // their size
	part       []byte         // any other part, written
	parts      int            // how many of those are left
}

// Reset starts with r, which must not change until the last Append. It refuses
// r as a whole when a part of it cannot travel.
func (e *SubscribeResponseEncoder) Reset(r *SubscribeResponse) (refused *core.Fault) {
	*e = SubscribeResponseEncoder{part: e.part[:0]}
	switch {
	case r.Deliveries != nil:
		e.deliveries = newCutter(r.Deliveries.Items, MaxItems, sizeDelivery)
		if e.deliveries.small() {
			return nil
		}
		for i := range r.Deliveries.Items {
			if f := r.Deliveries.Items[i].Fits(); f != nil {
				return f
			}
		}
	case len(r.Settled) > 0:
		e.settled = newCutter(r.Settled, MaxEntries, sizeResult)
		if !e.settled.fits() {
			return tooLong("the result of a verdict")
		}
	case r.CaughtUp:
		e.part, e.parts = appendLength(e.part, 6, 0), 1
	default:
		if field, m := r.generated(); m != nil {
			e.parts = 1
			e.part, refused = appendPart(e.part, field, m, MaxControl)
		}
	}
	return refused
}

// generated returns the part that generated code writes, and its field.
func (r *SubscribeResponse) generated() (byte, proto.Message) {
	switch {
	case r.Started != nil:
		return 1, r.Started
	case r.Void != nil:
		return 4, r.Void
	case r.Sought != nil:
		return 5, r.Sought
	case r.Report != nil:
		return 7, r.Report
	case r.Ended != nil:
		return 8, r.Ended
	}
	return 0, nil
}

// Fits says which limit a part of r that is neither deliveries nor results is
// over, nil when it is over none.
func (r *SubscribeResponse) Fits() *core.Fault {
	_, m := r.generated()
	if m == nil {
		return nil
	}
	return checkPart(m, proto.Size(m), MaxControl)
}

// Next moves to the next wire message and reports whether there is one.
func (e *SubscribeResponseEncoder) Next() bool {
	switch {
	case e.deliveries.ahead > 0:
		e.items, e.content = e.deliveries.next()
		return true
	case e.settled.ahead > 0:
		e.results, e.content = e.settled.next()
		return true
	}
	e.parts--
	return e.parts == 0
}

// Size is the size of the wire message.
func (e *SubscribeResponseEncoder) Size() int {
	if len(e.items) > 0 || len(e.results) > 0 {
		return sizeMessage(e.content)
	}
	return len(e.part)
}

// Append appends the wire message.
func (e *SubscribeResponseEncoder) Append(b []byte) []byte {
	switch {
	case len(e.items) > 0:
		b = appendLength(b, 2, e.content)
		for i := range e.items {
			b = appendDelivery(b, &e.items[i])
		}
		return b
	case len(e.results) > 0:
		b = appendLength(b, 3, e.content)
		for i := range e.results {
			b = appendResult(b, &e.results[i])
		}
		return b
	}
	return append(b, e.part...)
}

func sizeResult(r *SettleResult) int {
	return sizeUint(r.First) + sizeUint(r.Count) + sizeUint(uint64(r.Status)) + sizeFaultField(r.Fault)
}

func appendResult(b []byte, r *SettleResult) []byte {
	b = appendLength(b, 1, sizeResult(r))
	b = appendUint(b, 1, r.First)
	b = appendUint(b, 2, r.Count)
	b = appendUint(b, 3, uint64(r.Status))
	return appendFault(b, 4, r.Fault)
}

// DecodeSubscribeResponse reads the bytes of slab, a buffer of the Pool, into
// r. It takes slab over: a frame of deliveries in r holds it until it is
// released; everything else in r has memory of its own.
func DecodeSubscribeResponse(slab *[]byte, r *SubscribeResponse) error {
	*r = SubscribeResponse{}
	err := decodeSubscribeResponse(*slab, r)
	if r.Deliveries == nil {
		Pool{}.Put(slab)
	} else {
		r.Deliveries.store.slab = slab
	}
	if err == nil {
		return nil
	}
	r.become(SubscribeResponse{})
	return fmt.Errorf("decode SubscribeResponse: %w", err)
}

func decodeSubscribeResponse(b []byte, r *SubscribeResponse) error {
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		if n := tag >> 3; n > 8 || tag&7 != wireBytes {
			if err := m.skip(tag); err != nil {
				return err
			}
			continue
		}
		v, err := m.bytes()
		if err != nil {
			return err
		}
		if field := tag >> 3; field != 2 && field != 3 && len(b) > MaxControl {
			return errControl // parts of one kind add up, so the whole counts
		}
		if err := r.part(tag>>3, v); err != nil {
			return err
		}
	}
	return nil
}

// part reads one part. A later part replaces an earlier one of another kind
// and adds to one of its own, as protobuf has it.
func (r *SubscribeResponse) part(field uint64, b []byte) error {
	switch field {
	case 1:
		r.become(SubscribeResponse{Started: orNew(r.Started)})
		return merge(b, r.Started)
	case 2:
		d := r.Deliveries
		if d == nil {
			d = DeliveriesOf(count(b, 1))
		}
		r.become(SubscribeResponse{Deliveries: d})
		return readDeliveries(b, d)
	case 3:
		results, err := readEntries(b, r.Settled, readResult)
		r.become(SubscribeResponse{Settled: results})
		return err
	case 4:
		r.become(SubscribeResponse{Void: orNew(r.Void)})
		return merge(b, r.Void)
	case 5:
		r.become(SubscribeResponse{Sought: orNew(r.Sought)})
		return merge(b, r.Sought)
	case 6:
		r.become(SubscribeResponse{CaughtUp: true})
		return merge(b, &transportpb.CaughtUp{})
	case 7:
		r.become(SubscribeResponse{Report: orNew(r.Report)})
		return merge(b, r.Report)
	default:
		r.become(SubscribeResponse{Ended: orNew(r.Ended)})
		return merge(b, r.Ended)
	}
}

// become makes r next, whose deliveries are r's own or none.
func (r *SubscribeResponse) become(next SubscribeResponse) {
	if r.Deliveries != nil && next.Deliveries == nil {
		r.Deliveries.Release()
	}
	*r = next
}

func readResult(b []byte, r *SettleResult) error {
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		switch tag {
		case 1<<3 | wireVarint:
			r.First, err = m.varint()
		case 2<<3 | wireVarint:
			r.Count, err = m.varint()
		case 3<<3 | wireVarint:
			s, e := m.enum(uint8(SettleFailed))
			r.Status, err = SettleStatus(s), e
		case 4<<3 | wireBytes:
			r.Fault, err = m.fault(r.Fault)
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
