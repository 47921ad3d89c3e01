// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// sideSuffix is what the name of the side file has behind the path.
const sideSuffix = ".keys"

const (
	sideMagic = "longshore keys 1"
	// sideMark is how many bytes of the stream file, before the offset that the
	// side file describes, its digest covers.
	sideMark = 4096
	// sideHead is what a side file has before its keys, sideTail behind them.
	sideHead = len(sideMagic) + 8 + 8 + sha256.Size + 8 + 8 + 4
	sideTail = 4
	// sideKey is what a key takes besides its name.
	sideKey = 1 + 8 + 8 + 2 + 1
	// maxSide bounds what is read: about eight million keys.
	maxSide = 1 << 30
)

// side is what a side file says: the keys of a path as they are at an offset of
// one of its files. Beacons say the same where a file has few keys and there
// are no rotated ones.
//
//	magic, 16 bytes
//	u64 created, in the header of the file that it describes
//	u64 offset within that file
//	SHA-256 of the 4096 bytes before the offset, or of all there are
//	u64 created, u64 size of the file before, where it is written by a rotation, or 0
//	u32 number of keys
//	  u8 length and name, u64 sequence, u64 time, u16 its last record's checksum, u8 1 = in that file
//	u32 CRC-32C of all before
//
// Integers are big endian.
type side struct {
	created    int64
	offset     int64
	digest     [sha256.Size]byte
	before     int64
	beforeSize int64
	keys       []key
}

// errSide says that bytes are no side file. What is in it can be found out
// otherwise, so nobody needs to know more.
var errSide = errors.New("not a side file")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *side) encode() []byte {
	b := []byte(sideMagic)
	b = binary.BigEndian.AppendUint64(b, uint64(s.created))
	b = binary.BigEndian.AppendUint64(b, uint64(s.offset))
	b = append(b, s.digest[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.before))
	b = binary.BigEndian.AppendUint64(b, uint64(s.beforeSize))
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.keys)))
	for _, k := range s.keys {
		b = append(b, byte(len(k.name)))
		b = append(b, k.name...)
		b = binary.BigEndian.AppendUint64(b, k.sequence)
		b = binary.BigEndian.AppendUint64(b, uint64(k.time))
		b = binary.BigEndian.AppendUint16(b, k.last)
		if k.here {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseSide(b []byte) (*side, error) {
	if len(b) < sideHead+sideTail || !bytes.HasPrefix(b, []byte(sideMagic)) {
		return nil, errSide
	}
	body := b[:len(b)-sideTail]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[len(body):]) {
		return nil, errSide
	}
	at := body[len(sideMagic):]
	number := func() int64 {
		n := int64(binary.BigEndian.Uint64(at))
		at = at[8:]
		return n
	}
	s := &side{}
	s.created, s.offset = number(), number()
	at = at[copy(s.digest[:], at):]
	s.before, s.beforeSize = number(), number()
	count := binary.BigEndian.Uint32(at)
	at = at[4:]
	if s.offset < format.HeaderSize || int64(count)*(sideKey+1) > int64(len(at)) {
		return nil, errSide
	}
	s.keys = make([]key, 0, count)
	for range count {
		if len(at) < sideKey || len(at) < sideKey+int(at[0]) {
			return nil, errSide
		}
		name := string(at[1 : 1+at[0]])
		if !format.ValidKey(name) {
			return nil, errSide
		}
		at = at[1+len(name):]
		k := key{name: name, sequence: uint64(number()), time: number()}
		k.last, k.here = binary.BigEndian.Uint16(at), at[2] == 1
		at = at[3:]
		s.keys = append(s.keys, k)
	}
	if len(at) > 0 {
		return nil, errSide
	}
	return s, nil
}

// mayBeSide reports whether a file begins as a side file does and is as long as
// its number of keys allows, so that no other one is read whole.
func mayBeSide(f io.ReaderAt, size int64) bool {
	var head [sideHead]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !bytes.HasPrefix(head[:], []byte(sideMagic)) {
		return false
	}
	count := int64(binary.BigEndian.Uint32(head[sideHead-4:]))
	keys := size - int64(sideHead) - sideTail
	return size <= maxSide && count*(sideKey+1) <= keys && keys <= count*(sideKey+format.MaxKey)
}

func readSide(path string) (*side, error) {
	f, err := segment.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !mayBeSide(f, fi.Size()) {
		err = errSide
	}
	var b []byte
	if err == nil {
		b = make([]byte, fi.Size())
		_, err = io.ReadFull(f, b)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return parseSide(b)
}

// replaceSide puts a side file in its place, whole. A file that is none is not
// replaced; zeros are what the end of a machine may leave of one.
func replaceSide(path string, b []byte, sync bool) error {
	for _, p := range []string{path, path + nextSuffix} {
		there, err := readSome(p, len(sideMagic))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.HasPrefix([]byte(sideMagic), bytes.TrimRight(there, "\x00")) {
			return &InTheWayError{Path: p}
		}
	}
	if err := removed(path + nextSuffix); err != nil {
		return err
	}
	if err := writeNew(path+nextSuffix, b, 0o644, sync); err != nil {
		return err
	}
	return os.Rename(path+nextSuffix, path)
}

// readSome reads the first bytes of a file, n at most. What is no file is in the
// way.
func readSome(path string, n int) ([]byte, error) {
	f, err := segment.OpenRegular(path, os.O_RDONLY)
	if errors.As(err, new(*segment.KindError)) {
		return nil, &InTheWayError{Path: path}
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return b, errors.Join(err, f.Close())
}

// digest is that of the bytes before an offset of a file.
func digest(f io.ReaderAt, offset int64) ([sha256.Size]byte, error) {
	b := make([]byte, min(offset, sideMark))
	if _, err := f.ReadAt(b, offset-int64(len(b))); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("read the bytes before offset %d: %w", offset, err)
	}
	return sha256.Sum256(b), nil
}
