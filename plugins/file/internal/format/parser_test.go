// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
)

// read reads all records of b, which begins at off, and where they end.
func read(p *format.Parser, b []byte, off int64) ([]formattest.Placed, error) {
	var out []formattest.Placed
	for at := 0; at < len(b); {
		var r format.Record
		n, err := p.Next(b[at:], off+int64(at), &r)
		if err != nil {
			return out, err
		}
		at += n
		out = append(out, formattest.Placed{
			Head:    format.Head{Key: string(r.Key), Shard: r.Shard, Sequence: r.Sequence, Time: r.Time},
			Payload: r.Payload, End: off + int64(at),
		})
	}
	return out, nil
}

// written is what read finds in a whole file.
func written(b *formattest.Builder) []formattest.Placed {
	var out []formattest.Placed
	for _, r := range b.Records {
		r.At = 0
		out = append(out, r)
	}
	return out
}

func drawFile(t *rapid.T) *formattest.Builder {
	b := formattest.New(uint32(rapid.IntRange(1, 4).Draw(t, "interval")) * format.IntervalUnit)
	keys := []string{"a", "orders", "orders.dead", strings.Repeat("k", format.MaxKey)}
	for range rapid.IntRange(0, 30).Draw(t, "records") {
		h := format.Head{
			Key:      rapid.SampledFrom(keys).Draw(t, "key"),
			Shard:    rapid.Uint64().Draw(t, "shard"),
			Sequence: rapid.Uint64().Draw(t, "sequence"),
			Time:     rapid.Int64().Draw(t, "time"),
		}
		size := rapid.SampledFrom([]int{0, 1, 10, 500, 990, 1024, 5000}).Draw(t, "size")
		if rapid.Bool().Draw(t, "to the place of the next beacon") {
			room := int(b.Header.Interval) - len(b.Bytes)%int(b.Header.Interval) - format.RecordLen(h.Key, 0)
			size = max(0, room+rapid.IntRange(-3, 3).Draw(t, "beside it"))
		}
		payload := make([]byte, size)
		for i, step := 0, rapid.Byte().Draw(t, "step"); i < size; i++ {
			payload[i] = byte(i) * step
		}
		b.Put(h, payload)
	}
	return b
}

// TestEveryFileReads is the property that what is written is read, from the
// beginning and from every beacon.
func TestEveryFileReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawFile(t)
		p := &format.Parser{Interval: b.Header.Interval}
		got, err := read(p, trimmed(b)[format.HeaderSize:], format.HeaderSize)
		if err != nil {
			t.Fatal(err)
		}
		want := written(b)
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("got -, want +:\n%s", cmp.Diff(got, want))
		}
		size := int64(len(trimmed(b)))
		for place := format.NextPlace(0, p.Interval); place < size; place += int64(p.Interval) {
			off, ok, err := p.Boundary(b.Bytes[place:], place)
			if err != nil {
				t.Fatal(err)
			}
			if !ok || off > size {
				continue
			}
			got, err := read(p, trimmed(b)[off:], off)
			if err != nil {
				t.Fatalf("from the beacon at %d: %v", place, err)
			}
			if len(got) == 0 {
				continue
			}
			if want := want[len(want)-len(got):]; !reflect.DeepEqual(got, want) {
				t.Fatalf("from the beacon at %d: got -, want +:\n%s", place, cmp.Diff(got, want))
			}
		}
	})
}

// trimmed is the file without a beacon at its very end: behind it comes nothing
// that Next could read.
func trimmed(b *formattest.Builder) []byte {
	if len(b.Records) == 0 {
		return b.Bytes
	}
	return b.Bytes[:b.Records[len(b.Records)-1].End]
}

// TestOneBadByte is the property that a changed byte in a file loses at most the
// records up to the second beacon behind it, and that no record is read changed
// beyond what its checksum covers.
func TestOneBadByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawFile(t)
		if len(b.Records) == 0 {
			return
		}
		file := append([]byte(nil), trimmed(b)...)
		at := rapid.IntRange(format.HeaderSize, len(file)-1).Draw(t, "at")
		file[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		payloads := map[string]bool{}
		for _, r := range b.Records {
			payloads[string(r.Payload)] = true
		}
		p := &format.Parser{Interval: b.Header.Interval}
		ends := map[int64]bool{}
		for off := int64(format.HeaderSize); off < int64(len(file)); {
			got, err := read(p, file[off:], off)
			for _, r := range got {
				ends[r.End] = true
				if !payloads[string(r.Payload)] {
					t.Fatalf("a payload that nobody wrote")
				}
			}
			bad, ok := errors.AsType[*format.DamageError](err)
			if !ok {
				break
			}
			off = goOn(t, p, file, off, got, bad)
		}
		intervals := int64(b.Header.Interval)
		for _, r := range b.Records {
			behind := r.At > (int64(at)/intervals+2)*intervals && whole(b, int64(at), r)
			if (r.End <= int64(at)-intervals || behind) && !ends[r.End] {
				t.Errorf("byte %d is changed, the record from %d to %d is lost", at, r.At, r.End)
			}
		}
	})
}

// goOn is where reading goes on after damage.
func goOn(t *rapid.T, p *format.Parser, file []byte, off int64, got []formattest.Placed, bad *format.DamageError) int64 {
	if len(got) > 0 {
		off = got[len(got)-1].End
	}
	if bad.Resume > 0 {
		return off + int64(bad.Resume)
	}
	for place := format.NextPlace(bad.Offset, p.Interval); place < int64(len(file)); place += int64(p.Interval) {
		next, ok, err := p.Boundary(file[place:], place)
		if err == nil && ok {
			if next <= off {
				t.Fatalf("damage at %d leads from %d back to %d", bad.Offset, off, next)
			}
			return next
		}
	}
	return int64(len(file))
}

// whole reports whether r is not the end of a chain of records that hides the
// changed byte: a record that begins before the changed byte's next two beacons
// and goes on behind them.
func whole(b *formattest.Builder, at int64, r formattest.Placed) bool {
	for _, o := range b.Records {
		if o.At <= at+2*int64(b.Header.Interval) && o.End > r.At {
			return false
		}
	}
	return true
}

func TestSpillIsNotMoved(t *testing.T) {
	b := formattest.New(1024)
	for i := range 200 {
		b.Add("k", strings.Repeat(string(rune('a'+i%26)), 700))
	}
	p := &format.Parser{Interval: 1024}
	got, err := read(p, trimmed(b)[format.HeaderSize:], format.HeaderSize)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, written(b)); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	for _, interval := range []uint32{1024, format.DefaultInterval} {
		b := formattest.New(interval)
		for range 100 {
			b.Add("orders", strings.Repeat("x", 400))
		}
		file := trimmed(b)
		p := &format.Parser{Interval: interval}
		var r format.Record
		got := testing.AllocsPerRun(10, func() {
			p.Spill = p.Spill[:0]
			for at := format.HeaderSize; at < len(file); {
				n, err := p.Next(file[at:], int64(at), &r)
				if err != nil {
					t.Fatal(err)
				}
				at += n
				if cap(p.Spill)-len(p.Spill) < 600 {
					p.Spill = p.Spill[:0]
				}
			}
		})
		if got != 0 {
			t.Errorf("interval %d: %v allocations", interval, got)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct {
		name     string
		interval uint32
		size     int
	}{
		{"8", format.DefaultInterval, 8},
		{"512", format.DefaultInterval, 512},
		{"512, often cut", 1024, 512},
	} {
		b.Run(bench.name, func(b *testing.B) {
			build := formattest.New(bench.interval)
			for range 2000 {
				build.Add("orders", strings.Repeat("x", bench.size))
			}
			file := trimmed(build)
			p := &format.Parser{Interval: bench.interval, Spill: make([]byte, 0, 4<<20)}
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			var r format.Record
			for b.Loop() {
				p.Spill = p.Spill[:0]
				for at := format.HeaderSize; at < len(file); {
					n, err := p.Next(file[at:], int64(at), &r)
					if err != nil {
						b.Fatal(err)
					}
					at += n
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(build.Records)), "ns/record")
		})
	}
}
