// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// frame is a frame with these sizes.
func frame(total, command uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	return append(binary.BigEndian.AppendUint32(b, command), rest...)
}

// framed is the frame of a command, with what is to follow it.
func framed(command []byte, payload ...byte) []byte {
	return append(frame(uint32(4+len(command)+len(payload)), uint32(len(command)), command...), payload...)
}

// bytesOf reads bytes as tests write them.
func bytesOf(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// payloadOf is what follows the command of a frame.
func payloadOf(frame []byte) []byte {
	f, err := NewReader(bytes.NewReader(frame)).Next()
	if err != nil {
		panic(err)
	}
	return f.Payload
}

// messageOf turns the SEND in frame into a MESSAGE of its entry.
func messageOf(frame []byte, consumer uint64, ledger, entry int64) []byte {
	body := appendPosition(appendVarint(nil, 1, consumer), 2, ledger, entry)
	return framed(command(TypeMessage, body), payloadOf(frame)...)
}
