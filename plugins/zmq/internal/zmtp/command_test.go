// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Both forms of a subscription are read, everything else is none.
func TestSubscription(t *testing.T) {
	for name, tt := range map[string]struct {
		in       []byte
		prefix   string
		on, none bool
	}{
		"message on":          {zmtp.AppendSubscribe(nil, "ev", true), "ev", true, false},
		"message off":         {zmtp.AppendSubscribe(nil, "ev", false), "ev", false, false},
		"message on, all":     {zmtp.AppendSubscribe(nil, "", true), "", true, false},
		"message on, long":    {zmtp.AppendSubscribe(nil, strings.Repeat("e", 300), true), strings.Repeat("e", 300), true, false},
		"SUBSCRIBE":           {[]byte("\x04\x0c\x09SUBSCRIBEev"), "ev", true, false},
		"CANCEL":              {[]byte("\x04\x09\x06CANCELev"), "ev", false, false},
		"SUBSCRIBE, all":      {[]byte("\x04\x0a\x09SUBSCRIBE"), "", true, false},
		"message of an XSUB":  {frames("\x02ev"), "", false, true},
		"empty message":       {frames(""), "", false, true},
		"message of two":      {frames("\x01ev", "x"), "", false, true},
		"PING":                {zmtp.AppendPing(nil, 0, nil), "", false, true},
		"a command of theirs": {command("HELLO"), "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var f zmtp.Frames
			if err := next(zmtp.NewReader(bytes.NewReader(tt.in), mib), &f); err != nil {
				t.Fatal(err)
			}
			prefix, on, ok := zmtp.Subscription(&f)
			if string(prefix) != tt.prefix || on != tt.on || ok == tt.none {
				t.Errorf("%q, %v, %v", prefix, on, ok)
			}
		})
	}
}

// A PING is read with its time to live and its context, which the PONG gives
// back (RFC 37).
func TestPing(t *testing.T) {
	for name, tt := range map[string]struct {
		frame   []byte
		ttl     time.Duration
		context string
	}{
		"of RFC 37":     {[]byte("\x04\x0a\x04PING\x00\x1eabc"), 3 * time.Second, "abc"},
		"no context":    {[]byte("\x04\x07\x04PING\xff\xff"), 6553500 * time.Millisecond, ""},
		"our own":       {zmtp.AppendPing(nil, 1234*time.Millisecond, []byte("0123456789abcdef")), 1200 * time.Millisecond, "0123456789abcdef"},
		"too long":      {zmtp.AppendPing(nil, 1000*time.Hour, nil), 6553500 * time.Millisecond, ""},
		"negative ttl":  {zmtp.AppendPing(nil, -1, nil), 0, ""},
		"no heartbeats": {zmtp.AppendPing(nil, 0, []byte("x")), 0, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var f zmtp.Frames
			if err := next(zmtp.NewReader(bytes.NewReader(tt.frame), mib), &f); err != nil || f.Command != zmtp.CommandPing {
				t.Fatalf("%q, %v", f.Command, err)
			}
			ttl, context, ok := zmtp.ParsePing(f.Body)
			if ttl != tt.ttl || string(context) != tt.context || !ok {
				t.Errorf("%v, %q, %v", ttl, context, ok)
			}
			pong := zmtp.AppendPong(nil, context)
			if want := "\x04" + string(rune(5+len(tt.context))) + "\x04PONG" + tt.context; string(pong) != want {
				t.Errorf("answered by %q, want %q", pong, want)
			}
		})
	}
	for _, body := range []string{"", "\x00", "\x00\x00" + strings.Repeat("c", 17)} {
		if _, _, ok := zmtp.ParsePing([]byte(body)); ok {
			t.Errorf("%q is a PING", body)
		}
	}
}
