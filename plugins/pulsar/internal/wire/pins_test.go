// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"runtime"
	"testing"
	"weak"
)

// A message keeps no memory of others alive by its properties, and a Delivery that waits
// for the next one keeps none of a large one.
func TestPropertiesKeepNoFrames(t *testing.T) {
	const size = 256 << 10
	plain := Outgoing{Properties: []OutgoingProperty{{"a", []byte("b")}}, Payload: make([]byte, size)}
	var batch Batch
	batch.Add(&plain)
	batch.Add(&plain)
	for name, f := range map[string][]byte{
		"plain":             AppendSend(nil, &Send{}, &plain),
		"batch":             batch.AppendSend(nil, &Send{}),
		"batch, compressed": batch.AppendSend(nil, &Send{Compression: LZ4}),
	} {
		r := NewReader(bytes.NewReader(bytes.Repeat(messageOf(f, 1, 2, 3), 20)))
		var d Delivery
		var held []Message
		var frames []weak.Pointer[byte]
		for range 20 {
			f, err := r.Next()
			if err == nil {
				err = f.Delivery(&d)
			}
			if err == nil {
				held, err = d.Messages(held[:0])
			}
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, weak.Make(&held[0].Properties[0].Name[0]))
		}
		alive := func() (n int) {
			for range 3 {
				runtime.GC()
			}
			for _, f := range frames {
				if f.Value() != nil {
					n++
				}
			}
			return n
		}
		if n := alive(); n != 1 {
			t.Errorf("%s: one message keeps the memory of %d", name, n)
		}
		runtime.KeepAlive(held)
		clear(held[:cap(held)])
		d.Payload = nil
		if n := alive(); n != 0 {
			t.Errorf("%s: the memory of %d messages is kept when none is", name, n)
		}
		runtime.KeepAlive(&d)
	}
}
