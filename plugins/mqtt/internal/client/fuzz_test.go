// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// spoken is a connection on which the server says what is known before, a few bytes
// at a time, and takes what comes.
type spoken struct {
	bytes.Reader
	step int
}

func (s *spoken) Read(b []byte) (int, error)     { return s.Reader.Read(b[:min(len(b), s.step)]) }
func (*spoken) Write(b []byte) (int, error)      { return len(b), nil }
func (*spoken) WriteTo(io.Writer) (int64, error) { return 0, io.EOF } // not around Read
func (*spoken) Close() error                     { return nil }
func (*spoken) LocalAddr() net.Addr              { return nil }
func (*spoken) RemoteAddr() net.Addr             { return nil }
func (*spoken) SetDeadline(time.Time) error      { return nil }
func (*spoken) SetReadDeadline(time.Time) error  { return nil }
func (*spoken) SetWriteDeadline(time.Time) error { return nil }

// FuzzServer has a server say anything: the client ends that connection and nothing
// else, tells of one beginning and one end at most, and passes on what may come alone.
func FuzzServer(f *testing.F) {
	for _, s := range []string{connack + publish + publish[:3], resumed + pingresp, refusal(0x87), connack + farewell(0x8E),
		"HTTP/1.1 400 Bad Request\r\n", "\x20\x02\x00\x01", connack + connack, connack + "\x30\xff\xff\xff\x7f", "\x20\x06\x00\x00\x03\x13\x00\x01" + publish} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, said []byte, step uint8) {
		h := newRecorder()
		c := New(Config{Handler: h, Connect: packet.ConnectParams{ClientID: "x", MaxPacket: 4096}, Dial: func(context.Context) (net.Conn, error) {
			return &spoken{*bytes.NewReader(said), int(step) + 1}, nil
		}})
		s, err := c.connect(1)
		if err == nil {
			_, err = c.serve(1, s)
		}
		if err == nil {
			t.Fatal("a connection that has ended has no reason")
		}
		c.fatal(err)
		if len(h.ups) != len(h.downs) {
			t.Errorf("%d beginnings, %d ends", len(h.ups), len(h.downs))
		}
		for len(h.packets) > 0 {
			switch q := <-h.packets; q.typ {
			case packet.TypePublish, packet.TypePuback, packet.TypePubrec, packet.TypePubrel, packet.TypePubcomp, packet.TypeSuback, packet.TypeUnsuback:
			default:
				t.Errorf("%s is passed on", packet.Name(q.typ))
			}
		}
	})
}
