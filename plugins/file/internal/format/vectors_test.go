// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// born is the time of the vectors.
const born = 1_700_000_000_000

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChecksumVectors(t *testing.T) {
	for in, want := range map[string]uint16{
		"": NoChecksum, "123456789": 0x4c06, "hello, world": 0x8028, `{"id":7}`: 0x8fbb, "EOS": 0xed7c, "1": 0xcd4f,
		strings.Repeat("A", 1000): 0xe54b,
	} {
		if got := Checksum([]byte(in)); got != want {
			t.Errorf("checksum of %.20q: got %04x, want %04x", in, got, want)
		}
	}
	if got := Running(NoChecksum, 0x8fbb); got != 0x1035 {
		t.Errorf("running checksum: got %04x, want 1035", got)
	}
}

func TestVectors(t *testing.T) {
	const copied = "rs1:AAAAL3N0cmVhbS1zZXF1ZW5jZTogMQp4LXJ1c3RzdHJlYW0tcmV0cnktY291bnQ6IDEKeyJpZCI6N30="
	for _, v := range []struct {
		name      string
		got       []byte
		want      string
		wantBytes int
	}{
		{
			"header", Header{Name: "orders.ss", Created: born, Interval: 1 << 20}.Append(nil),
			"537301 09 6f72646572732e7373 0000018bcfe56800 00100000" + strings.Repeat("00", 102) + "0d", 128,
		},
		{
			"prime record", AppendRecord(nil, Head{Key: PrimeKey, Sequence: 1, Time: born}, []byte("1")),
			`13 7275737473747265616d2d696e7465726e616c 0000000000000000 0000000000000001 0000018bcfe56800
			00000001 31 cd4f 0d`, 52,
		},
		{
			"record", AppendRecord(nil, Head{Key: "orders", Sequence: 1, Time: born + 1}, []byte(`{"id":7}`)),
			"06 6f7264657273 0000000000000000 0000000000000001 0000018bcfe56801 00000008 7b226964223a377d 8fbb 0d", 46,
		},
		{
			"copy", AppendRecord(nil, Head{Key: "orders", Sequence: 2, Time: born + 1001}, []byte(copied)),
			"06 6f7264657273 0000000000000000 0000000000000002 0000018bcfe56be9 00000054" + hex.EncodeToString([]byte(copied)) + "b28a 0d", 122,
		},
		{
			"end of stream", AppendEnd(nil, born+2),
			`15 5345415f53545245414d45525f494e5445524e414c 0000000000000000 0000000000000000 0000018bcfe56802
			00000003 454f53 ed7c 0d`, 56,
		},
		{
			"beacon", AppendBeacon(nil, Beacon{Remaining: 137, Markers: []Marker{{Head{Key: "k", Sequence: 1, Time: born}, 0x5d9b}}}),
			"0d 00000089 01 01 6b 0000000000000000 0000000000000001 0000018bcfe56800 5d9b 0d", 35,
		},
	} {
		t.Run(v.name, func(t *testing.T) {
			if diff := cmp.Diff(v.got, unhex(t, v.want)); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
			if len(v.got) != v.wantBytes {
				t.Errorf("%d bytes, want %d", len(v.got), v.wantBytes)
			}
		})
	}
}

func TestSlots(t *testing.T) {
	for interval, want := range map[uint32]int{0: 0, 1024: 1, 4096: 7, 1 << 20: 127, 1 << 30: 127} {
		if got := Slots(interval); got != want {
			t.Errorf("slots at %d: got %d, want %d", interval, got, want)
		}
	}
}

// TestCutVector reads the file of the reference whose one record is cut by a
// beacon.
func TestCutVector(t *testing.T) {
	payload := strings.Repeat("A", 1000)
	record := AppendRecord(nil, Head{Key: "k", Sequence: 1, Time: born}, []byte(payload))
	file := Header{Name: "b.ss", Created: born, Interval: 1024}.Append(nil)
	file = append(file, record[:896]...)
	file = append(file, unhex(t, "0d 00000089 01 01 6b 0000000000000000 0000000000000001 0000018bcfe56800 5d9b 0d")...)
	file = append(file, record[896:]...)
	if len(file) != 1196 {
		t.Errorf("%d bytes, want 1196", len(file))
	}
	p := Parser{Interval: 1024}
	var got Record
	n, err := p.Next(file[HeaderSize:], HeaderSize, &got)
	if err != nil || n != len(file)-HeaderSize {
		t.Fatalf("got %d bytes and error %v, want %d", n, err, len(file)-HeaderSize)
	}
	want := Record{Key: []byte("k"), Sequence: 1, Time: born, Payload: []byte(payload), Checksum: 0xe54b}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if got := Running(NoChecksum, got.Checksum); got != 0x5d9b {
		t.Errorf("running checksum: got %04x, want 5d9b", got)
	}
}
