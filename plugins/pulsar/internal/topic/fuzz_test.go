// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"bytes"
	"testing"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// What is taken for a name is read the same from its full form, and what a service may
// name a server may list.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"orders", "a/b/c", "persistent://a/b/c-partition-3", "non-persistent://a/b/c", "a-partition-x", "://", "a/b/c/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := topic.ParseListed(s)
		if err == nil {
			if again, err := topic.ParseListed(n.String()); err != nil || again != n {
				t.Errorf("%q: %+v is read as %+v, %v", s, n, again, err)
			}
		}
		strict, strictErr := topic.Parse(s)
		if strictErr == nil && (err != nil || strict != n) {
			t.Errorf("%q: a service names %+v, a server lists %+v, %v", s, strict, n, err)
		}
		if p, err := topic.ParsePattern(s); err == nil && strictErr == nil {
			_ = p.Matches(strict)
		}
	})
}

// What is taken for a position is written the same.
func FuzzPosition(f *testing.F) {
	f.Add(topic.AppendPosition(nil, "persistent://public/default/orders", topic.ID{Ledger: 9, Entry: 1, Partition: 2, Batch: 3}))
	f.Add(topic.AppendPosition(nil, "persistent://public/default/orders", topic.ID{Partition: topic.NoPartition, Batch: topic.NoBatch}))
	f.Add([]byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(t *testing.T, position []byte) {
		n, id, err := topic.DecodePosition(position)
		if err != nil {
			return
		}
		again := topic.AppendPosition(nil, n.Base().String(), id)
		gotName, gotID, err := topic.DecodePosition(again)
		if err != nil || gotName != n || gotID != id {
			t.Errorf("%x: %v %v is read as %v %v, %v", position, n, id, gotName, gotID, err)
		}
		if len(again) == len(position) && !bytes.Equal(again, position) {
			t.Errorf("%x is written as %x", position, again)
		}
	})
}
