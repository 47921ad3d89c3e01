// SPDX-License-Identifier: Apache-2.0

package message

import (
	"reflect"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// Bytes are a carry of ours or none, and a carry says again what it has said.
func FuzzCarry(f *testing.F) {
	f.Add(appendCarry(nil, &own{key: []byte("k"), orderingKey: []byte("o"), eventTime: 1}, "orders", topic.ID{Ledger: 9, Partition: -1, Batch: -1}))
	f.Add([]byte{carryMark, carryVersion})
	f.Add([]byte("another endpoint's"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := parseCarry(b)
		_ = DeadLetter(&core.Message{}, Options{}, b)
		if !ok || len(c.key) > maxCarried || len(c.orderingKey) > maxCarried {
			return
		}
		again := appendCarry(nil, &c.own, string(c.as), c.id)
		if most := carrySize(&c.own, string(c.as)); len(again) > most {
			t.Errorf("%x takes %d bytes, more than %d", b, len(again), most)
		}
		if got, ok := parseCarry(again); !ok || !reflect.DeepEqual(got, c) {
			t.Errorf("%x: %+v is read as %+v, %t", b, c, got, ok)
		}
	})
}
