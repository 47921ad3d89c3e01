// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// bySequence is the answer by looking at every record.
func bySequence(b *formattest.Builder, key string, seq uint64) index.Found {
	var last uint64
	for _, r := range b.Records {
		if r.Key != key {
			continue
		}
		if last = max(last, r.Sequence); r.Sequence >= seq {
			return index.Found{Offset: r.At, OK: true, Sequence: r.Sequence}
		}
	}
	return index.Found{Offset: int64(len(b.Bytes)), Last: last}
}

// byTime is the answer by looking at every record.
func byTime(b *formattest.Builder, key string, ms int64) index.Found {
	for _, r := range b.Records {
		if (key == "" || r.Key == key) && r.Time > ms {
			return index.Found{Offset: r.At, OK: true, Sequence: r.Sequence}
		}
	}
	return index.Found{Offset: int64(len(b.Bytes))}
}

func sequence(t testing.TB, b *formattest.Builder, key string, seq uint64) (index.Found, int64) {
	t.Helper()
	from := &counting{ReaderAt: bytes.NewReader(b.Bytes)}
	got, err := index.Sequence(from, int64(len(b.Bytes)), b.Header, key, seq)
	if err != nil {
		t.Fatal(err)
	}
	return got, from.n
}

func moment(t testing.TB, b *formattest.Builder, key string, ms int64) (index.Found, int64) {
	t.Helper()
	match := func(k []byte) bool { return string(k) == key }
	if key == "" {
		match = nil
	}
	from := &counting{ReaderAt: bytes.NewReader(b.Bytes)}
	got, err := index.Time(from, int64(len(b.Bytes)), b.Header, match, ms)
	if err != nil {
		t.Fatal(err)
	}
	return got, from.n
}

func TestSearch(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf("key-%02d", i)
	}
	few := several(1024, 40, 100, "orders", "other")
	few.Add("rare", "once")
	for range 40 {
		few.Add("orders", "x")
	}
	large := formattest.New(1024)
	for i := range 10 {
		large.Put(format.Head{Key: "large", Sequence: uint64(i + 1), Time: formattest.Born + int64(i)}, make([]byte, 20_000))
	}
	for _, test := range []struct {
		name string
		b    *formattest.Builder
		keys []string
	}{
		{"one marker a beacon", few, []string{"orders", "other", "rare", format.PrimeKey, "absent"}},
		{"more keys than markers", several(4096, 30, 100, many...), []string{"key-00", "key-13", "key-19"}},
		{"records over many beacons", large, []string{"large", "absent"}},
		{"no record", formattest.New(1024), []string{"orders"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, key := range test.keys {
				for seq := range uint64(90) {
					got, _ := sequence(t, test.b, key, seq)
					if diff := cmp.Diff(got, bySequence(test.b, key, seq)); diff != "" {
						t.Errorf("sequence %d of %s: got -, want +:\n%s", seq, key, diff)
					}
				}
			}
			for _, key := range append(test.keys, "") {
				for ms := int64(formattest.Born - 1); ms < formattest.Born+int64(len(test.b.Records))+3; ms++ {
					got, _ := moment(t, test.b, key, ms)
					if diff := cmp.Diff(got, byTime(test.b, key, ms)); diff != "" {
						t.Errorf("later than %d, key %q: got -, want +:\n%s", ms-formattest.Born, key, diff)
					}
				}
			}
		})
	}
}

// TestSearchAfterReopen has beacons that do not name a key which earlier ones
// did.
func TestSearchAfterReopen(t *testing.T) {
	b := several(1024, 50, 100, "orders")
	b.Reopen()
	for range 50 {
		b.Add("other", "a record of another key, in a later run of the writer")
	}
	b.Put(format.Head{Key: "orders", Sequence: 51, Time: formattest.Born + 500}, nil)
	for seq := range uint64(53) {
		got, _ := sequence(t, b, "orders", seq)
		if diff := cmp.Diff(got, bySequence(b, "orders", seq)); diff != "" {
			t.Errorf("sequence %d: got -, want +:\n%s", seq, diff)
		}
	}
}

func TestSearchReadsLittle(t *testing.T) {
	b := several(64<<10, 20_000, 200, "orders", "other")
	size := int64(len(b.Bytes))
	for _, seq := range []uint64{1, 777, 19_999, 20_001} {
		got, read := sequence(t, b, "orders", seq)
		if got != bySequence(b, "orders", seq) || read > size/20 {
			t.Errorf("sequence %d: %+v, %d of %d bytes read", seq, got, read, size)
		}
	}
	for _, n := range []int64{0, 777, 39_999, 50_000} {
		got, read := moment(t, b, "", formattest.Born+n)
		if got != byTime(b, "", formattest.Born+n) || read > size/20 {
			t.Errorf("time %d: %+v, %d of %d bytes read", n, got, read, size)
		}
	}
}

// TestSearchBehindDamage has a damaged beacon, and a damaged record in front of
// what is searched for.
func TestSearchBehindDamage(t *testing.T) {
	b := several(1024, 60, 100, "orders")
	want := bySequence(b, "orders", 55)
	for _, at := range []int64{b.Records[2].At + 3, 2048, 4096 + 5, b.Records[40].End - 1} {
		file := bytes.Clone(b.Bytes)
		file[at] ^= 0xff
		got, err := index.Sequence(bytes.NewReader(file), int64(len(file)), b.Header, "orders", 55)
		if got != want || err != nil {
			t.Errorf("byte %d damaged: got %+v and error %v, want %+v", at, got, err, want)
		}
	}
}

// TestSearchProperty searches in files of any shape, with a writer that is
// opened again, and with a torn tail.
func TestSearchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := formattest.New(uint32(rapid.IntRange(1, 4).Draw(t, "interval")) * 1024)
		b.Slots = min(b.Slots, rapid.IntRange(0, 3).Draw(t, "slots"))
		keys := []string{"a", "b", "c", "d", "e"}
		sequences := map[string]uint64{}
		when := int64(formattest.Born)
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			if rapid.IntRange(0, 20).Draw(t, "opened again") == 0 {
				b.Reopen()
			}
			k := rapid.SampledFrom(keys).Draw(t, "key")
			sequences[k] += uint64(rapid.IntRange(1, 2).Draw(t, "step"))
			when += int64(rapid.IntRange(0, 2).Draw(t, "later"))
			size := rapid.SampledFrom([]int{0, 50, 300, 3000}).Draw(t, "size")
			b.Put(format.Head{Key: k, Sequence: sequences[k], Time: when}, make([]byte, size))
		}
		size := int64(len(b.Bytes))
		torn := append(bytes.Clone(b.Bytes), "\x06orders"...)
		k := rapid.SampledFrom(keys).Draw(t, "searched key")
		seq := uint64(rapid.IntRange(0, 70).Draw(t, "searched sequence"))
		got, err := index.Sequence(bytes.NewReader(torn), size+int64(rapid.IntRange(0, 7).Draw(t, "torn")), b.Header, k, seq)
		if want := bySequence(b, k, seq); got != want || err != nil {
			t.Errorf("sequence %d of %s: got %+v and error %v, want %+v", seq, k, got, err, want)
		}
		ms := formattest.Born + int64(rapid.IntRange(-1, 130).Draw(t, "searched time"))
		got, err = index.Time(bytes.NewReader(b.Bytes), size, b.Header, func(key []byte) bool { return string(key) == k }, ms)
		if want := byTime(b, k, ms); got != want || err != nil {
			t.Errorf("later than %d: got %+v and error %v, want %+v", ms, got, err, want)
		}
		got, err = index.Time(bytes.NewReader(b.Bytes), size, b.Header, nil, ms)
		if want := byTime(b, "", ms); got != want || err != nil {
			t.Errorf("any later than %d: got %+v and error %v, want %+v", ms, got, err, want)
		}
	})
}
