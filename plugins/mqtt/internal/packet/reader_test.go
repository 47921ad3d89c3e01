// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

const mib = 1 << 20

// Packets come whole and in order however they come in pieces, a byte at a time
// included.
func TestReader(t *testing.T) {
	in := slices.Concat(
		raw(packet.TypeConnack, 0, "\x00\x00\x00"), raw(packet.TypePingresp, 0, ""),
		raw(packet.TypePublish, 3, strings.Repeat("p", 127)), raw(packet.TypePublish, 0, strings.Repeat("q", 128)),
		raw(packet.TypePublish, 15, strings.Repeat("r", 300_000)), raw(packet.TypePubrel, 2, "\x00\x01"),
		raw(packet.TypeDisconnect, 0, ""),
	)
	want := []string{
		"CONNACK 0 000000", "PINGRESP 0 ", "PUBLISH 3 " + strings.Repeat("70", 127), "PUBLISH 0 " + strings.Repeat("71", 128),
		"PUBLISH F " + strings.Repeat("72", 300_000), "PUBREL 2 0001", "DISCONNECT 0 ", "EOF",
	}
	for name, sizes := range map[string][]byte{"whole": nil, "bytes": {0}, "few": {2, 0, 6}, "many": {255}} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, told(packet.NewReader(&pieces{rest: in, sizes: sizes}, mib))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A packet that is cut off anywhere is never handed out.
func TestReaderTruncations(t *testing.T) {
	in := raw(packet.TypePublish, 0, strings.Repeat("p", 200))
	for n := range in {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err := next(packet.NewReader(bytes.NewReader(in[:n]), 0), &packet.Packet{}); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Heads that are not allowed end the connection before anything behind them has
// arrived, before memory is taken, and each time they are asked for.
func TestReaderRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		head string
		code byte
	}{
		"type 0":                  {"\x00\x00", packet.CodeMalformed},
		"HTTP":                    {"HTTP/1.1 400 Bad Request\r\n", packet.CodeMalformed},
		"CONNACK with flags":      {"\x21\x7f", packet.CodeMalformed},
		"PUBREL without flags":    {"\x60\x02", packet.CodeMalformed},
		"five bytes of length":    {"\x30\xff\xff\xff\xff\x01", packet.CodeMalformed},
		"four that do not end":    {"\x30\xff\xff\xff\xff", packet.CodeMalformed},
		"length of too many":      {"\x30\x80\x00", packet.CodeMalformed},
		"PINGRESP with a body":    {"\xd0\x01", packet.CodeMalformed},
		"256 MiB":                 {"\x30\xff\xff\xff\x7f", packet.CodeTooLarge},
		"a byte over the limit":   {"\x30\xfd\xff\x3f", packet.CodeTooLarge}, // 2^20-3 and 4 of head
		"over the limit, CONNACK": {"\x20\xfd\xff\x3f", packet.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r := packet.NewReader(strings.NewReader(tt.head), mib)
			var p packet.Packet
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := next(r, &p)
			runtime.ReadMemStats(&after)
			if code(err) != tt.code {
				t.Fatalf("error %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
				t.Errorf("%d bytes were taken", got)
			}
			if _, again := r.Next(&p); again == nil || again.Error() != err.Error() {
				t.Errorf("asked again: %v", again)
			}
		})
	}
	t.Run("the limit", func(t *testing.T) {
		in := raw(packet.TypePublish, 0, strings.Repeat("p", mib-4))
		if err := next(packet.NewReader(bytes.NewReader(in), mib), &packet.Packet{}); err != nil {
			t.Error(err)
		}
	})
}

// A packet within the limit that was announced and has not arrived costs no more
// than a few times what has.
func TestReaderGrowsByArrival(t *testing.T) {
	const size = 64 * mib
	head := "\x30\xf0\xff\xff\x1f"
	for _, arrived := range []int{0, 1 << 10, 300 << 10, 4 * mib} {
		r := packet.NewReader(io.MultiReader(strings.NewReader(head), bytes.NewReader(make([]byte, arrived))), size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := next(r, &packet.Packet{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		// Every step is kept by the statistics, hence a sum of steps.
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(6*arrived+700<<10); got > most {
			t.Errorf("%d bytes were taken for %d that have arrived", got, arrived)
		}
	}
}

// A large packet's memory goes with it: what stays behind is a slab as before.
func TestReaderShrinks(t *testing.T) {
	in := bytes.Join([][]byte{raw(packet.TypePublish, 0, strings.Repeat("p", 8*mib)), raw(packet.TypePingresp, 0, "")}, nil)
	r := packet.NewReader(&pieces{rest: bytes.Repeat(in, 3), sizes: []byte{255}}, 0)
	var p packet.Packet
	for range 3 {
		for _, want := range []byte{packet.TypePublish, packet.TypePingresp} {
			if err := next(r, &p); err != nil || p.Type != want {
				t.Fatalf("%s, %v", packet.Name(p.Type), err)
			}
			r.Spent()
		}
	}
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	if stats.HeapInuse > 64*mib {
		t.Errorf("%d MiB are in use", stats.HeapInuse/mib)
	}
	r.Close()
}

// Loans of single packets last on their own, and their memory is overwritten when
// they end, in builds that poison.
func TestReaderLends(t *testing.T) {
	in := slices.Concat(raw(packet.TypePublish, 0, "aaaa"), raw(packet.TypePublish, 0, "bbbb"), raw(packet.TypePublish, 0, "cccc"))
	r := packet.NewReader(bytes.NewReader(in), 0)
	var ps [3]packet.Packet
	var loans [3]packet.Loan
	for i := range ps {
		if err := next(r, &ps[i]); err != nil {
			t.Fatal(err)
		}
		r.Lend(&loans[i])
	}
	loans[1].Release()
	r.Close()
	middle := "bbbb"
	if poison.On {
		middle = strings.Repeat(string([]byte{poison.Byte}), 4)
	}
	if string(ps[0].Body) != "aaaa" || string(ps[1].Body) != middle || string(ps[2].Body) != "cccc" {
		t.Errorf("%q %q %q", ps[0].Body, ps[1].Body, ps[2].Body)
	}
	loans[0].Release()
	loans[2].Release()
}
