// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// Whatever a peer sends, reading ends with a command, the end of the bytes or a
// *FrameError, and holds no more memory than bytes came.
func FuzzRead(f *testing.F) {
	f.Add(AppendPing(AppendPong(nil)))
	f.Add(AppendConnect(nil, "client", Auth{Method: "token", Data: []byte("secret")}))
	f.Add(framed(command(TypeTopicsResponse, appendText(appendVarint(nil, 1, 3), 2, "persistent://a/b/c"))))
	f.Add(framed(command(TypeConnected, appendVarint(appendText(nil, 1, "4.0"), 3, 5<<20))))
	f.Add(frame(MaxFrame, MaxFrame-4))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var buf []byte
		for {
			b, err := ReadFrame(r, buf)
			if err != nil {
				if _, ok := errors.AsType[*FrameError](err); !ok && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("ReadFrame: %v", err)
				}
				return
			}
			c, err := ParseCommand(b)
			if _, ok := errors.AsType[*FrameError](err); err != nil && !ok {
				t.Fatalf("ParseCommand: %v", err)
			}
			if err == nil && c.Type <= 0 {
				t.Fatalf("a command of type %d", c.Type)
			}
			held := len(c.Message) + len(c.ServerVersion) + len(c.AuthMethod)
			for _, s := range c.Topics {
				held += len(s)
			}
			if held > len(in) {
				t.Fatalf("%d bytes came, %d are held", len(in), held)
			}
			buf = b
		}
	})
}
