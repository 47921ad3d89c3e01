// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Two of our own, with and without an identity.
func TestHandshake(t *testing.T) {
	for own, other := range socketTypes {
		t.Run(string(own), func(t *testing.T) {
			a, b := opened(t, zmtp.Options{Type: own, Identity: []byte("me\x00")}, zmtp.Options{Type: other})
			if a.PeerType() != other || b.PeerType() != own {
				t.Errorf("types %s and %s", a.PeerType(), b.PeerType())
			}
			if got := string(b.PeerIdentity()); got != "me\x00" || len(a.PeerIdentity()) != 0 {
				t.Errorf("identities %q and %q", got, a.PeerIdentity())
			}
			if _, err := a.NetConn().Write(zmtp.AppendFrame(zmtp.AppendFrame(nil, []byte("a"), true), []byte("b"), false)); err != nil {
				t.Fatal(err)
			}
			var f zmtp.Frames
			if err := next(b.Reader(), &f); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]byte{[]byte("a"), []byte("b")}, f.List); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A peer that says something else than its READY, something no version 3 peer
// says, or a type that does not go with ours is refused with the reason, its
// connection closed.
func TestHandshakeRefuses(t *testing.T) {
	pull := zmtp.Options{Type: zmq4.Pull}
	long := strings.Repeat("x", 5000)
	for name, tt := range map[string]struct {
		send  []byte
		stage zmtp.Stage
		want  string
	}{
		"HTTP":                     {[]byte("GET / HTTP/1.1\r\n\r\n"), zmtp.StageGreeting, "HTTP"},
		"TLS":                      {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), zmtp.StageGreeting, "no ZMTP"},
		"zeros":                    {make([]byte, 64), zmtp.StageGreeting, "no ZMTP"},
		"signature without end":    {append([]byte{0xff}, make([]byte, 8)...), zmtp.StageMechanism, "hung up"},
		"signature with bad end":   {append([]byte{0xff}, "12345678\x81"...), zmtp.StageGreeting, "no ZMTP"},
		"ZMTP 1":                   {[]byte{1, 0}, zmtp.StageGreeting, "ZMTP 1"},
		"ZMTP 1, long identity":    {append([]byte{0xff, 0, 0, 0, 0, 0, 0, 1, 1, 0}, "id"...), zmtp.StageGreeting, "ZMTP 1"},
		"ZMTP 2":                   {greeting(1, 0, "")[:12], zmtp.StageGreeting, "ZMTP 2"},
		"as-server":                {func() []byte { b := greeting(3, 0, "NULL"); b[32] = 2; return b }(), zmtp.StageGreeting, "as-server"},
		"PLAIN":                    {greeting(3, 0, "PLAIN"), zmtp.StageMechanism, `"PLAIN"`},
		"CURVE":                    {greeting(3, 1, "CURVE"), zmtp.StageMechanism, `"CURVE"`},
		"no mechanism":             {greeting(3, 1, ""), zmtp.StageMechanism, `""`},
		"a message for READY":      {append(greeting(3, 0, "NULL"), 0, 1, 'x'), zmtp.StageReady, "flags"},
		"READY with more":          {append(greeting(3, 0, "NULL"), 5, 1, 'x'), zmtp.StageReady, "flags"},
		"another command":          {append(greeting(3, 0, "NULL"), command("HELLO")...), zmtp.StageReady, `"HELLO"`},
		"ERROR":                    {append(greeting(3, 0, "NULL"), command("ERROR\x04nope")...), zmtp.StageReady, `refuses: "nope"`},
		"empty command":            {append(greeting(3, 0, "NULL"), 4, 0), zmtp.StageReady, "without a name"},
		"name cut off":             {append(greeting(3, 0, "NULL"), 4, 3, 5, 'R', 'E'), zmtp.StageReady, "without a name"},
		"READY of 5000 bytes":      {hello("Socket-Type", "PUSH", "X-A", long), zmtp.StageReady, "the limit is 4096"},
		"READY of 2^63-1 bytes":    {append(greeting(3, 0, "NULL"), 6, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), zmtp.StageReady, "the limit is 4096"},
		"no metadata":              {hello(), zmtp.StageReady, "without Socket-Type"},
		"two types":                {hello("Socket-Type", "PUSH", "socket-type", "PUSH"), zmtp.StageReady, "two Socket-Type"},
		"two identities":           {hello("Socket-Type", "PUSH", "Identity", "a", "IDENTITY", "b"), zmtp.StageReady, "two Identity"},
		"identity of 256 bytes":    {hello("Socket-Type", "PUSH", "Identity", long[:256]), zmtp.StageReady, "256 bytes"},
		"unknown type":             {hello("Socket-Type", "TELEX"), zmtp.StageType, `"TELEX"`},
		"empty type":               {hello("Socket-Type", ""), zmtp.StageType, `""`},
		"type that does not match": {hello("Socket-Type", "PUB"), zmtp.StageType, `"PUB" socket, which does not go with our PULL; it has to be PUSH`},
		"nothing":                  {nil, zmtp.StageGreeting, "hung up"},
		"signature alone":          {greeting(3, 1, "")[:10], zmtp.StageMechanism, "hung up"},
		"greeting alone":           {greeting(3, 0, "NULL"), zmtp.StageReady, "hung up"},
		"half a READY":             {hello("Socket-Type", "PUSH")[:80], zmtp.StageReady, "hung up"},
	} {
		t.Run(name, func(t *testing.T) {
			ends := tt.want == "hung up"
			_, _, err := against(t, tt.send, ends, pull)
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) {
				t.Fatalf("error %v", err)
			}
			if fault.Stage != tt.stage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q of the stage %q", err, tt.want, tt.stage)
			}
			if ends != errors.Is(err, io.EOF) {
				t.Errorf("%v: the end of stream is not told", err)
			}
		})
	}
}

// What would make the library panic is refused before it sees it: lengths of
// metadata that it does not check, socket types that it does not know.
func TestHandshakeMetadataThatPanicsTheLibrary(t *testing.T) {
	for name, body := range map[string]string{
		"name longer than the rest":     "READY\x7fSocket-Type",
		"no room for the value's size":  "READY\x0bSocket-Type\x00\x00",
		"name alone":                    "READY\x0bSocket-Type",
		"value longer than the rest":    "READY\x0bSocket-Type\x00\x00\x00\x7fPUSH",
		"value of 4 GiB":                "READY\x0bSocket-Type\xff\xff\xff\xffPUSH",
		"a byte behind the properties":  "READY" + metadata("Socket-Type", "PUSH") + "\x01",
		"empty name":                    "READY" + metadata("Socket-Type", "PUSH", "", "x"),
		"unknown type":                  "READY" + metadata("Socket-Type", "TELEX"),
		"a type in another case alone":  "READY" + metadata("SOCKET-TYPE", "push"),
		"metadata without a type":       "READY" + metadata("Identity", "x"),
		"a type for the library to cut": "READY" + metadata("Socket-Type", "PUSH\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			send := append(greeting(3, 0, "NULL"), command(body)...)
			_, _, err := against(t, send, false, zmtp.Options{Type: zmq4.Pull})
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) {
				t.Fatalf("error %v", err)
			}
			t.Log(err)
		})
	}
}

// Property names in any case and unknown properties are no reason to refuse,
// nor are later minor versions.
func TestHandshakeTolerates(t *testing.T) {
	for name, tt := range map[string]struct {
		send     []byte
		identity string
	}{
		"lower case":       {hello("socket-type", "PUSH", "identity", "a"), "a"},
		"upper case":       {hello("IDENTITY", "b", "SOCKET-TYPE", "PUSH"), "b"},
		"other properties": {hello("X-A", "1", "Resource", "", "Socket-Type", "PUSH", "x-a", "2"), ""},
		"longest identity": {hello("Socket-Type", "PUSH", "Identity", strings.Repeat("i", 255)), strings.Repeat("i", 255)},
		"version 3.1":      {append(greeting(3, 1, "NULL"), hello("Socket-Type", "PUSH")[64:]...), ""},
		"version 4":        {append(greeting(4, 0, "NULL"), hello("Socket-Type", "PUSH")[64:]...), ""},
		"long READY":       {hello("Socket-Type", "PUSH", "X-A", strings.Repeat("x", 3000)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := against(t, tt.send, true, zmtp.Options{Type: zmq4.Pull})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(c.PeerIdentity()); got != tt.identity || c.PeerType() != zmq4.Push {
				t.Errorf("a %s called %q", c.PeerType(), got)
			}
		})
	}
}

// A peer that says nothing, or a byte now and then, is given up at the deadline
// and its connection closed.
func TestHandshakeSilentPeer(t *testing.T) {
	for name, send := range map[string][]byte{"silent": nil, "half a greeting": greeting(3, 0, "NULL")[:30], "no READY": greeting(3, 0, "NULL")} {
		t.Run(name, func(t *testing.T) {
			ours, peer := pair(t)
			if _, err := peer.Write(send); err != nil {
				t.Fatal(err)
			}
			const wait = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			start := time.Now()
			_, err := zmtp.Open(ctx, ours, zmtp.Options{Type: zmq4.Pull, MaxMessage: mib})
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took < wait/2 || took > limit/2 {
				t.Errorf("given up after %v", took)
			}
			if _, err := ours.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}

// The end of a context without a deadline ends a handshake.
func TestHandshakeCancelled(t *testing.T) {
	ours, peer := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := zmtp.Open(ctx, ours, zmtp.Options{Type: zmq4.Pull, MaxMessage: mib})
		done <- err
	}()
	if _, err := io.ReadFull(peer, make([]byte, 64)); err != nil { // it waits for our greeting by now
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n, err := io.Copy(io.Discard, peer); n != 0 || err != nil {
		t.Errorf("the peer has heard %d bytes more, %v", n, err)
	}
}

// A deadline of the handshake does not stay.
func TestHandshakeClearsItsDeadline(t *testing.T) {
	for most := 200 * time.Millisecond; ; most *= 2 { // a busy machine may need more
		ours, peer := pair(t)
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		if _, err := peer.Write(hello("Socket-Type", "PUSH")); err != nil {
			t.Fatal(err)
		}
		c, err := zmtp.Open(ctx, ours, zmtp.Options{Type: zmq4.Pull, MaxMessage: mib})
		if err != nil && most < limit {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		go func() { _, _ = peer.Write([]byte{0, 1, 'x'}) }()
		var f zmtp.Frames
		if err := next(c.Reader(), &f); err != nil {
			t.Error(err)
		}
		return
	}
}

// Options that the library would panic at, or cut off, are refused.
func TestHandshakeOptions(t *testing.T) {
	for name, o := range map[string]zmtp.Options{
		"no type":       {MaxMessage: 1},
		"unknown type":  {Type: "TELEX", MaxMessage: 1},
		"long identity": {Type: zmq4.Dealer, Identity: make([]byte, 256), MaxMessage: 1},
		"no limit":      {Type: zmq4.Pull},
	} {
		t.Run(name, func(t *testing.T) {
			ours, _ := pair(t)
			_, err := zmtp.Open(t.Context(), ours, o)
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) || fault.Stage != zmtp.StageOptions {
				t.Errorf("error %v", err)
			}
			if _, err := ours.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}

// A peer that dials and says nothing before we have said all of it is waited for
// no longer than a moment, twice.
func TestHandshakeWithPeersThatWait(t *testing.T) {
	ours, peer := pair(t)
	ready := make(chan error, 1)
	go func() {
		said := hello("Socket-Type", "PUSH")
		heard := make([]byte, 64)
		_, err := io.ReadFull(peer, heard)
		if err == nil {
			_, err = peer.Write(said[:64])
		}
		if err == nil {
			_, err = io.ReadFull(peer, heard[:27]) // READY with PULL
		}
		if err == nil {
			_, err = peer.Write(said[64:])
		}
		ready <- err
	}()
	c, err := open(ours, zmtp.Options{Type: zmq4.Pull, Accepted: true})
	if err := <-ready; err != nil {
		t.Error(err)
	}
	if err != nil || c.PeerType() != zmq4.Push {
		t.Errorf("%v, %v", c, err)
	}
}
