// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

func TestID(t *testing.T) {
	for want, id := range map[string]topic.ID{
		"9:0:-1":     {9, 0, topic.NoPartition, topic.NoBatch},
		"12:34:5":    {12, 34, 5, topic.NoBatch},
		"12:34:-1:0": {12, 34, topic.NoPartition, 0},
		"9223372036854775807:9223372036854775807:2147483647:2147483647": {math.MaxInt64, math.MaxInt64, math.MaxInt32, math.MaxInt32},
	} {
		if id.String() != want {
			t.Errorf("%+v is %q, want %q", id, id, want)
		}
		if got, err := topic.ParseID(want); err != nil || got != id {
			t.Errorf("%q: got %+v, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "1", "1:2", "1:2:3:4:5", "-1:0:0", "0:-1:0", "0:0:-2", "0:0:0:-1", "+1:0:0", "01:0:0", "1:0:2147483648", "a:b:c", "1:0: 2", "9223372036854775808:0:0"} {
		if id, err := topic.ParseID(s); err == nil {
			t.Errorf("%q is taken for %+v", s, id)
		}
	}
	order := []topic.ID{{1, 9, 0, -1}, {2, 0, 0, -1}, {2, 1, 0, 0}, {2, 1, 0, 1}, {2, 2, 0, -1}}
	for i := range order {
		for j := range order {
			if got := order[i].Compare(order[j]); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v against %v: %d", order[i], order[j], got)
			}
		}
	}
}

func TestPosition(t *testing.T) {
	n, err := topic.Parse("acme/eu/orders")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]topic.ID{}
	for _, id := range []topic.ID{{1, 2, -1, -1}, {1, 2, 3, -1}, {1, 2, 3, 4}, {math.MaxInt64, 0, math.MaxInt32, 0}} {
		at := topic.AppendPosition([]byte("before"), n.String(), id)[len("before"):]
		if len(at) > topic.MaxPosition+len(n.String()) {
			t.Errorf("%v takes %d bytes", id, len(at))
		}
		gotName, gotID, err := topic.DecodePosition(at)
		if err != nil || gotID != id || gotName != n.At(int(id.Partition)) {
			t.Errorf("%v: got %v, %v, %v", id, gotName, gotID, err)
		}
		if before, ok := seen[string(at)]; ok {
			t.Errorf("%v and %v have one position", before, id)
		}
		seen[string(at)] = id
	}
	for name, position := range map[string][]byte{
		"nothing":         nil,
		"another version": append([]byte{2}, topic.AppendPosition(nil, n.String(), topic.ID{})[1:]...),
		"cut in the id":   {1, 2, 4},
		"no topic":        topic.AppendPosition(nil, "", topic.ID{}),
		"a partition":     topic.AppendPosition(nil, n.At(1).String(), topic.ID{}),
		"a short name":    topic.AppendPosition(nil, "orders", topic.ID{}),
		"out of range":    topic.AppendPosition(nil, n.String(), topic.ID{Ledger: -1}),
	} {
		_, _, err := topic.DecodePosition(position)
		if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultInvalid || !strings.Contains(f.Message, "no position of a Pulsar topic") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
