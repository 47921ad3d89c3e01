// SPDX-License-Identifier: Apache-2.0

package slab_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/internal/slab"
)

// pieces hands out its bytes as a stream does: never more than it likes.
type pieces struct {
	rest []byte
	size func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size())], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// record is four bytes of length and so many of a kind.
func record(kind byte, size int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(size)), bytes.Repeat([]byte{kind}, size)...)
}

// take takes a record off b, nil = it has not arrived whole.
func take(b *slab.Buffer) []byte {
	data := b.Bytes()
	if len(data) < 4 {
		return nil
	}
	n := 4 + int(binary.BigEndian.Uint32(data))
	if len(data) < n {
		b.Need(n)
		return nil
	}
	b.Take(n)
	return data[:n:n]
}

// next takes the next record.
func next(b *slab.Buffer) ([]byte, error) {
	for {
		if r := take(b); r != nil {
			return r, nil
		}
		if err := b.Fill(); err != nil {
			return nil, err
		}
	}
}

// Whatever the sizes of records and reads, and whatever is lent and given back
// when: each record comes whole, and what is lent stays as it is.
func TestBufferProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 64), rapid.IntRange(0, 5000), rapid.IntRange(0, 600_000)), 1, 60).Draw(t, "sizes")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		most := rapid.SampledFrom([]int{1, 500, 5000, 1 << 20}).Draw(t, "read")
		var in []byte
		for i, n := range sizes {
			in = append(in, record(byte(i), n)...)
		}
		b := slab.NewBuffer(&pieces{in, func() int { return 1 + rnd.IntN(most) }})
		type lent struct {
			loan slab.Loan
			data []byte
			want []byte
		}
		var open []*lent
		giveBack := func() {
			i := rnd.IntN(len(open))
			if !bytes.Equal(open[i].data, open[i].want) {
				t.Fatal("what was lent has changed")
			}
			open[i].loan.Release()
			open = append(open[:i], open[i+1:]...)
		}
		for i, n := range sizes {
			got, err := next(b)
			if err != nil || !bytes.Equal(got, record(byte(i), n)) {
				t.Fatalf("record %d of %d bytes: %d bytes, %v", i, n, len(got), err)
			}
			if rnd.IntN(4) == 0 {
				b.Spent()
				continue
			}
			l := &lent{data: got, want: bytes.Clone(got)}
			if b.Lend(&l.loan); l.loan.Size() != len(got) {
				t.Fatalf("%d bytes are lent, of %d", l.loan.Size(), len(got))
			}
			if open = append(open, l); len(open) > 5 {
				giveBack()
			}
		}
		if _, err := next(b); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		b.Close()
		for len(open) > 0 {
			giveBack()
		}
	})
}

// What is spent or given back is overwritten in builds that poison.
func TestBufferPoisons(t *testing.T) {
	b := slab.NewBuffer(bytes.NewReader(append(record('a', 10), record('b', 10)...)))
	first, err := next(b)
	if err != nil {
		t.Fatal(err)
	}
	b.Spent()
	second, err := next(b)
	if err != nil {
		t.Fatal(err)
	}
	var l slab.Loan
	b.Lend(&l)
	if second[4] != 'b' {
		t.Error("what is lent is overwritten")
	}
	l.Release()
	l.Release() // there is nothing to give back any more
	if got := first[4] == poison.Byte && second[4] == poison.Byte; got != poison.On {
		t.Errorf("%q and %q, poison is %v", first, second, poison.On)
	}
	b.Close()
}

// claim notes what a buffer asks for.
type claim struct {
	taken []int64
	fills int
	err   error
}

func (c *claim) Take(n int64) error {
	c.taken = append(c.taken, n)
	return c.err
}

func (c *claim) Drop() { c.taken = append(c.taken, 0) }

func (c *claim) Fills(on bool) {
	if on {
		c.fills++
	} else {
		c.fills--
	}
}

// A claim is asked for what is beyond the pooled sizes, step by step, and told when
// that has gone; where it refuses, Fill does.
func TestBufferShare(t *testing.T) {
	in := append(record('a', 2<<20), record('b', 10)...)
	c := &claim{}
	b := slab.NewBuffer(bytes.NewReader(in))
	b.Share(c)
	for range 2 {
		if _, err := next(b); err != nil {
			t.Fatal(err)
		}
		b.Spent()
	}
	last := int64(0)
	for _, n := range c.taken {
		if n > 0 && (n < last || n > 3<<20) {
			t.Errorf("asked for %d after %d", n, last)
		}
		last = max(last, n)
	}
	if last < 2<<20 {
		t.Errorf("asked for %v", c.taken)
	}
	if b.Close(); c.taken[len(c.taken)-1] != 0 || c.fills != 0 {
		t.Errorf("asked for %v, and fills %d", c.taken, c.fills)
	}
	c = &claim{err: os.ErrDeadlineExceeded}
	b = slab.NewBuffer(bytes.NewReader(in))
	b.Share(c)
	if _, err := next(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// A connection that is waited for holds no memory, and ends as the peer does.
func TestBufferOfConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = ours.Close(), l.Close() }()
	b := slab.NewBuffer(ours)
	for _, wait := range []func() error{b.Fill, b.Wait} {
		_ = ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if err := wait(); !errors.Is(err, os.ErrDeadlineExceeded) || b.Holds() {
			t.Errorf("error %v, holds memory: %v", err, b.Holds())
		}
	}
	_ = ours.SetReadDeadline(time.Time{})
	if _, err := peer.Write(record('a', 3)[:5]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Wait(), b.Fill()); err != nil || b.Buffered() != 5 || !b.Holds() {
		t.Errorf("%d bytes, %v", b.Buffered(), err)
	}
	_ = peer.Close()
	if _, err := next(b); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if b.Close(); b.Holds() || b.Buffered() != 0 {
		t.Error("closed, and holds memory")
	}
}
