// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		bind bool
		want string // as String writes it; "" = refused
		says string // what the refusal says
	}{
		{text: "tcp://127.0.0.1:5555", want: "tcp://127.0.0.1:5555"},
		{text: "tcp://broker.example:5555", want: "tcp://broker.example:5555"},
		{text: "tcp://[::1]:5555", want: "tcp://[::1]:5555"},
		{text: "tcp://[fe80::1%eth0]:5555", bind: true, want: "tcp://[fe80::1%eth0]:5555"},
		{text: "tcp://*:5555", bind: true, want: "tcp://*:5555"},
		{text: "tcp://*:*", bind: true, want: "tcp://*:0"},
		{text: "tcp://127.0.0.1:0", bind: true, want: "tcp://127.0.0.1:0"},
		{text: "ipc:///run/x.sock", want: "ipc:///run/x.sock"},
		{text: "ipc://x.sock", bind: true, want: "ipc://x.sock"},

		{text: "tcp://*:5555", says: "names no peer"},
		{text: "tcp://127.0.0.1:0", says: "has a port"},
		{text: "tcp://127.0.0.1:*", says: "has a port"},
		{text: "tcp://127.0.0.1", says: "host:port"},
		{text: "tcp://::1:5555", says: "host:port"},
		{text: "tcp://:5555", bind: true, says: "host is missing"},
		{text: "tcp://127.0.0.1:65536", says: "is no port"},
		{text: "tcp://127.0.0.1:zmq", says: "is no port"},
		{text: "tcp://127.0.0.1:5555/x", says: "is no port"},
		{text: "tcp://user@host:5555", says: "is no host"},
		{text: "tcp://eth0;host:5555", says: "source address"},
		{text: "inproc://x", bind: true, says: "only tcp and ipc"},
		{text: "udp://127.0.0.1:5555", says: "only tcp and ipc"},
		{text: "TCP://127.0.0.1:5555", says: "only tcp and ipc"},
		{text: "127.0.0.1:5555", says: "tcp and ipc"},
		{text: "", says: "tcp and ipc"},
		{text: "ipc://", says: "names no file"},
		{text: "ipc:///run/", says: "names no file"},
		{text: "ipc://@abstract", says: "abstract socket"},
		{text: "ipc://*", bind: true, says: "chosen"},
		{text: "ipc:///" + strings.Repeat("x", maxPath), says: "bytes, the system takes"},
		{text: "ipc:///a\x00b", says: "zero byte"},
	} {
		a, err := ParseAddress(c.text, c.bind)
		if c.want != "" {
			if err != nil || a.String() != c.want {
				t.Errorf("ParseAddress(%q, %t): %v, %v, want %s", c.text, c.bind, a, err, c.want)
			}
			continue
		}
		var refused *AddressError
		if !errors.As(err, &refused) {
			t.Errorf("ParseAddress(%q, %t): %v, %v, want it refused (S-ZMQ-37)", c.text, c.bind, a, err)
			continue
		}
		if refused.Text != c.text || refused.Fix == "" || !strings.Contains(refused.Reason, c.says) {
			t.Errorf("ParseAddress(%q, %t): refused by %q, want %q in it, and a fix", c.text, c.bind, err, c.says)
		}
	}
}

// What was read is written so that it is read again as the same.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"tcp://*:*", "tcp://[::1]:5555", "tcp://h:1", "ipc:///a", "ipc://@x", "udp://x", "tcp://[a:b]:1"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, bind bool) {
		a, err := ParseAddress(text, bind)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.String(), bind)
		if err != nil || again != a {
			t.Errorf("%q is %+v, written as %q, which is %+v, %v", text, a, a.String(), again, err)
		}
	})
}
