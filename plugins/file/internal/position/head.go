// SPDX-License-Identifier: Apache-2.0

package position

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Where the parts of a position file begin.
const (
	holderAt = 2048
	slotsAt  = 4096
	slotSize = 2 << 20 // holds any state of MaxUnsettled records, which take at most 23 bytes each
)

// maxName is the longest group, and the longest subscription but for its "*".
const maxName = format.MaxKey

var headMagic = [8]byte{'l', 's', 'p', 'o', 's', 0, 0, 1}

// fileName is where a subscription's position lies in its group's folder. No key
// holds a "+", and the ending keeps keys of dots from being folders.
func fileName(name string) string { return strings.ReplaceAll(name, "*", "+") + ".pos" }

func checkNames(group, name string) error {
	switch {
	case !format.ValidKey(group):
		return &NameError{Field: "group", Value: group, Reason: "is no name"}
	case strings.Trim(group, ".") == "":
		return &NameError{Field: "group", Value: group, Reason: "is dots alone, as a folder cannot be"}
	case name != "*" && !format.ValidKey(strings.TrimSuffix(name, "*")):
		return &NameError{Field: "name", Value: name, Reason: "is neither a key nor a prefix with \"*\""}
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// cutText takes a text off b.
func cutText(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return "", nil, false
	}
	return string(b[2 : 2+n]), b[2+n:], true
}

// appendHead writes whose position a file is.
func appendHead(b []byte, group, name string) []byte {
	start := len(b)
	b = append(b, headMagic[:]...)
	b = appendText(appendText(b, group), name)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// readHead reads whose position a file is, or why it is none.
func readHead(b []byte) (group, name, reason string) {
	if len(b) < len(headMagic) || string(b[:5]) != string(headMagic[:5]) {
		return "", "", "it is no position"
	}
	if [8]byte(b) != headMagic {
		return "", "", "its version is not known"
	}
	group, rest, ok := cutText(b[len(headMagic):])
	name, rest, ok2 := cutText(rest)
	if !ok || !ok2 || len(rest) < 4 || binary.BigEndian.Uint32(rest) != crc32.Checksum(b[:len(b)-len(rest)], castagnoli) {
		return "", "", "the checksum of its head does not fit"
	}
	return group, name, ""
}

// readHolder returns who a file says has it open.
func readHolder(f io.ReaderAt) string {
	var b [512]byte
	n, _ := f.ReadAt(b[:], holderAt)
	s, _, _ := cutText(b[:n])
	return s
}
