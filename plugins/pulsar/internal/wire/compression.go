// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression is how payloads are compressed (enum CompressionType of
// PulsarApi.proto).
type Compression int32

// The kinds of compression. LZ4 is a block, Snappy a block, ZLib and ZSTD are a
// stream each.
const (
	NoCompression Compression = iota
	LZ4
	ZLib
	ZSTD
	Snappy
)

// maxUncompressed is the most that a payload or a batch is decompressed to, in bytes:
// the size of the largest message that there can be between a plugin and a host.
const maxUncompressed = 64 << 20

// String is the name of the compression in the protocol, or its number.
func (c Compression) String() string {
	switch c {
	case NoCompression:
		return "NONE"
	case LZ4:
		return "LZ4"
	case ZLib:
		return "ZLIB"
	case ZSTD:
		return "ZSTD"
	case Snappy:
		return "SNAPPY"
	}
	return "compression " + strconv.Itoa(int(c))
}

// ratio is how many bytes a compressed byte can become at most, 0 = the compression
// is not known: what announces more than that is not given memory.
func (c Compression) ratio() int {
	switch c {
	case LZ4:
		return 255 // a byte of a length says so many
	case ZLib:
		return 1032 // 258 bytes in two bits
	case ZSTD:
		return 1 << 15 // 128 KiB in the four bytes of a block
	case Snappy:
		return 32 // 64 bytes in three
	}
	return 0
}

// Memory of compressions that is used again.
var (
	zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}
	zlibReaders sync.Pool // of io.ReadCloser that are zlib.Resetter
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxUncompressed))
	})
)

// zstdWindow is how far back ZSTD looks, in bytes: more costs memory, and messages are
// seldom larger.
const zstdWindow = 1 << 20

// appendCompressed appends src in compressed form. c is one of the constants.
func appendCompressed(dst []byte, c Compression, src []byte) []byte {
	switch c {
	case LZ4:
		at, bound := len(dst), lz4.CompressBlockBound(len(src))
		dst = slices.Grow(dst, bound)
		var l lz4.Compressor
		n, err := l.CompressBlock(src, dst[at:at+bound])
		if err != nil { // cannot be with so much room
			return append(dst[:at], src...)
		}
		return dst[:at+n]
	case ZLib:
		b := bytes.NewBuffer(dst)
		w := zlibWriters.Get().(*zlib.Writer)
		w.Reset(b)
		_, _ = w.Write(src) // a buffer takes all
		_ = w.Close()
		zlibWriters.Put(w)
		return b.Bytes()
	case ZSTD:
		e, _ := zstdEncoder()
		return e.EncodeAll(src, dst)
	case Snappy:
		at, bound := len(dst), snappy.MaxEncodedLen(len(src))
		dst = slices.Grow(dst, bound)
		return dst[:at+len(snappy.Encode(dst[at:at+bound], src))]
	}
	return append(dst, src...)
}

// decompress returns what src, which is compressed, was before: n bytes, by what is
// said with it. They do not share src's memory.
func (c Compression) decompress(src []byte, n uint32) ([]byte, error) {
	ratio := c.ratio()
	switch {
	case ratio == 0:
		return nil, fmt.Errorf("%s is not known", c)
	case n > maxUncompressed:
		return nil, fmt.Errorf("%d bytes are to become %d, over the limit of %d", len(src), n, maxUncompressed)
	case int(n)/ratio > len(src):
		return nil, fmt.Errorf("%d bytes cannot become %d", len(src), n)
	}
	dst := make([]byte, n)
	var err error
	got := 0
	switch c {
	case LZ4:
		got, err = lz4.UncompressBlock(src, dst)
	case ZLib:
		got, err = inflate(dst, src)
	case ZSTD:
		got, err = unzstd(dst, src)
	case Snappy:
		if got, err = snappy.DecodedLen(src); err == nil && got == len(dst) {
			_, err = snappy.Decode(dst, src)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case got != len(dst):
		return nil, fmt.Errorf("it becomes %d bytes, in place of %d", got, n)
	}
	return dst, nil
}

func inflate(dst, src []byte) (int, error) {
	var err error
	in := bytes.NewReader(src)
	r, ok := zlibReaders.Get().(io.ReadCloser)
	if ok {
		err = r.(zlib.Resetter).Reset(in, nil)
	} else {
		r, err = zlib.NewReader(in)
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	var more [1]byte
	switch _, err := io.ReadFull(r, more[:]); { // the checksum is at the end
	case err == nil:
		return n + 1, nil
	case err != io.EOF:
		return n, err
	}
	zlibReaders.Put(r)
	return n, nil
}

func unzstd(dst, src []byte) (int, error) {
	d, err := zstdDecoder()
	if err != nil {
		return 0, err
	}
	b, err := d.DecodeAll(src, dst[:0])
	return len(b), err
}
