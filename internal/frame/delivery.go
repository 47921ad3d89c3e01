// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/longshore-go/longshore/core"

// sizeDelivery is the size of a Delivery's content.
func sizeDelivery(d *Delivery) int {
	return sizeUint(d.ID) + sizeBytes(len(d.Message.Name)) + sizeHeaders(d.Message.Headers) +
		sizeBytes(len(d.Message.Payload)) + sizeUint(uint64(d.Attempt)) + sizeUint(uint64(d.Profile)) +
		sizeBytes(len(d.Scope)) + sizeBytes(len(d.Identity)) + sizeBytes(len(d.Position)) +
		sizeBytes(len(d.Carry)) + sizeUint(uint64(d.PublishedAt)) + sizeFaultField(d.Undecodable)
}

func appendDelivery(b []byte, d *Delivery) []byte {
	b = appendLength(b, 1, sizeDelivery(d))
	b = appendUint(b, 1, d.ID)
	b = appendString(b, 2, d.Message.Name)
	b = appendHeaders(b, 3, d.Message.Headers)
	b = appendBytes(b, 4, d.Message.Payload)
	b = appendUint(b, 5, uint64(d.Attempt))
	b = appendUint(b, 6, uint64(d.Profile))
	b = appendString(b, 7, d.Scope)
	b = appendBytes(b, 8, d.Identity)
	b = appendBytes(b, 9, d.Position)
	b = appendBytes(b, 10, d.Carry)
	b = appendUint(b, 11, uint64(d.PublishedAt))
	return appendFault(b, 12, d.Undecodable)
}

// readDeliveries adds the items of a Deliveries message to d. All but their
// strings points into b.
func readDeliveries(b []byte, d *Deliveries) error {
	w, _ := tables.Get().(*words)
	defer tables.Put(w)
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		if tag != 1<<3|wireBytes {
			if err := m.skip(tag); err != nil {
				return err
			}
			continue
		}
		v, err := m.bytes()
		if err != nil {
			return err
		}
		if len(d.Items) == MaxItems {
			return errTooMany
		}
		d.Items = append(d.Items, Delivery{})
		if err := readDelivery(v, &d.Items[len(d.Items)-1], &d.store, w); err != nil {
			return err
		}
	}
	return nil
}

func readDelivery(b []byte, d *Delivery, s *store, w *words) error {
	first := len(s.headers)
	w.begin()
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		var n uint64
		switch tag {
		case 1<<3 | wireVarint:
			d.ID, err = m.varint()
		case 2<<3 | wireBytes:
			d.Message.Name, err = m.word(w)
		case 3<<3 | wireBytes:
			err = s.header(&m, w)
		case 4<<3 | wireBytes:
			d.Message.Payload, err = m.bytes()
		case 5<<3 | wireVarint:
			n, err = m.varint()
			d.Attempt = uint32(n)
		case 6<<3 | wireVarint:
			n, err = m.varint()
			d.Profile = uint32(n)
		case 7<<3 | wireBytes:
			d.Scope, err = m.word(w)
		case 8<<3 | wireBytes:
			d.Identity, err = m.bytes()
		case 9<<3 | wireBytes:
			d.Position, err = m.bytes()
		case 10<<3 | wireBytes:
			d.Carry, err = m.bytes()
		case 11<<3 | wireVarint:
			n, err = m.varint()
			d.PublishedAt = int64(n)
		case 12<<3 | wireBytes:
			d.Undecodable, err = m.fault(d.Undecodable)
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	d.Message.Headers = s.cut(first)
	return nil
}

// header reads one header of the current item.
func (s *store) header(m *reader, w *words) error {
	if len(s.headers) == MaxHeaders {
		return errTooMany
	}
	s.headers = append(s.headers, core.Header{})
	return m.header(&s.headers[len(s.headers)-1], w)
}

// cut returns the headers from first on. When they have grown out of their
// array, earlier items keep the old one.
func (s *store) cut(first int) core.Headers {
	if first == len(s.headers) {
		return nil
	}
	return core.Headers(s.headers[first:len(s.headers):len(s.headers)])
}
