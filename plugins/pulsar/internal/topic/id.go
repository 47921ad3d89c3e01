// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"cmp"
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// NoBatch is the index of a message that is no part of a batch.
const NoBatch = -1

// ID is the id of a message within its topic.
type ID struct {
	Ledger    int64
	Entry     int64
	Partition int32 // NoPartition where the topic has none
	Batch     int32 // index in a batch, NoBatch = it is no part of one
}

// String returns "ledger:entry:partition", of a message in a batch with ":index"
// behind it: the form of ORIGIN_MESSAGE_ID (reference 3.5).
func (id ID) String() string { return string(id.AppendText(nil)) }

// AppendText appends what String returns.
func (id ID) AppendText(dst []byte) []byte {
	dst = strconv.AppendInt(dst, id.Ledger, 10)
	dst = strconv.AppendInt(append(dst, ':'), id.Entry, 10)
	dst = strconv.AppendInt(append(dst, ':'), int64(id.Partition), 10)
	if id.Batch >= 0 {
		dst = strconv.AppendInt(append(dst, ':'), int64(id.Batch), 10)
	}
	return dst
}

// Compare orders ids of one partition as they were stored.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Ledger, other.Ledger), cmp.Compare(id.Entry, other.Entry), cmp.Compare(id.Batch, other.Batch))
}

// ParseID reads what String returns.
func ParseID(s string) (ID, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 3 || len(parts) > 4 {
		return ID{}, noID(s)
	}
	numbers := [4]int64{3: NoBatch}
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != part { // no plus sign, no leading zero
			return ID{}, noID(s)
		}
		numbers[i] = n
	}
	id, ok := makeID(numbers)
	if !ok || len(parts) == 4 && id.Batch == NoBatch {
		return ID{}, noID(s)
	}
	return id, nil
}

// makeID makes an id of ledger, entry, partition and index, where they are in range.
func makeID(n [4]int64) (ID, bool) {
	ok := n[0] >= 0 && n[1] >= 0 &&
		n[2] >= NoPartition && n[2] <= math.MaxInt32 && n[3] >= NoBatch && n[3] <= math.MaxInt32
	return ID{Ledger: n[0], Entry: n[1], Partition: int32(n[2]), Batch: int32(n[3])}, ok
}

func noID(s string) *core.Fault {
	f := fault.Refusal(core.FaultInvalid, "%s is no id of a message", fault.Shown(s))
	f.Diagnostics = []core.Diagnostic{{Fix: "write ledger:entry:partition, and :index behind it for a message of a batch"}}
	return f
}

// positionVersion begins a position; another layout has another number.
const positionVersion = 1

// MaxPosition is the most bytes of a position before its topic.
const MaxPosition = 1 + 4*binary.MaxVarintLen64

// AppendPosition appends the bytes that stand for one message among all topics, the
// Position and the Identity of a delivery. Base is the topic's name in full, without
// a partition: the id has that.
func AppendPosition(dst []byte, base string, id ID) []byte {
	dst = AppendID(append(dst, positionVersion), id)
	return append(dst, base...)
}

// DecodePosition reads what AppendPosition has appended: the topic, or its partition
// where the id names one, and the id. The error is a fault that says that these
// bytes are no position.
func DecodePosition(position []byte) (Name, ID, error) {
	refuse := func(reason string) (Name, ID, error) {
		f := fault.Refusal(core.FaultInvalid, "this is no position of a Pulsar topic: %s", reason)
		f.Diagnostics = []core.Diagnostic{{Fix: "use the position of a delivery of this subscription"}}
		return Name{}, ID{}, f
	}
	if len(position) == 0 || position[0] != positionVersion {
		return refuse("its version is unknown")
	}
	id, rest, ok := CutID(position[1:])
	if !ok {
		return refuse("its id cannot be read")
	}
	n, err := ParseListed(string(rest))
	if err != nil || n.Partition != NoPartition || n.String() != string(rest) {
		return refuse("its topic cannot be read")
	}
	return n.At(int(id.Partition)), id, nil
}

// AppendID appends an id, which CutID takes off.
func AppendID(dst []byte, id ID) []byte {
	for _, n := range [...]int64{id.Ledger, id.Entry, int64(id.Partition), int64(id.Batch)} {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// CutID takes an id off the front of b.
func CutID(b []byte) (id ID, rest []byte, ok bool) {
	var numbers [4]int64
	for i := range numbers {
		n, size := binary.Varint(b)
		if size <= 0 {
			return ID{}, nil, false
		}
		numbers[i], b = n, b[size:]
	}
	id, ok = makeID(numbers)
	return id, b, ok
}
