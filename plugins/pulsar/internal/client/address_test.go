// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseURL(t *testing.T) {
	many := "pulsar://h" + strings.Repeat(",h", maxHosts)
	for name, tt := range map[string]struct {
		url  string
		want string // the URL with all ports
		bad  string // part of the refusal
	}{
		"plain":             {url: "pulsar://localhost", want: "pulsar://localhost:6650"},
		"TLS":               {url: "pulsar+ssl://broker.example", want: "pulsar+ssl://broker.example:6651"},
		"port":              {url: "pulsar://10.0.0.1:7000", want: "pulsar://10.0.0.1:7000"},
		"slash at the end":  {url: "PULSAR://localhost:1/", want: "pulsar://localhost:1"},
		"several hosts":     {url: "pulsar://a:1,b,[::1]:3", want: "pulsar://a:1,b:6650,[::1]:3"},
		"IPv6":              {url: "pulsar+ssl://[fe80::1]", want: "pulsar+ssl://[fe80::1]:6651"},
		"no scheme":         {url: "localhost:6650", bad: "names no scheme"},
		"administration":    {url: "http://localhost:8080", bad: "binary protocol"},
		"another scheme":    {url: "mqtt://localhost", bad: `"mqtt" is not offered`},
		"empty scheme":      {url: "://localhost", bad: "scheme is empty"},
		"no host":           {url: "pulsar://", bad: "host is missing"},
		"empty host":        {url: "pulsar://a,,b", bad: "host is missing"},
		"no port":           {url: "pulsar://a:", bad: "port is missing"},
		"port out of range": {url: "pulsar://a:65536", bad: "no port"},
		"port 0":            {url: "pulsar://a:0", bad: "no port"},
		"IPv6 without []":   {url: "pulsar://::1:6650", bad: "more than one colon"},
		"bracket open":      {url: "pulsar://[::1", bad: "bracket is not closed"},
		"name in brackets":  {url: "pulsar://[a]:1", bad: "no host"},
		"semicolon":         {url: "pulsar://a;b", bad: "no host"},
		"path":              {url: "pulsar://a/b", bad: "has no meaning"},
		"query":             {url: "pulsar://a?b=c", bad: "has no meaning"},
		"user":              {url: "pulsar://secret@a", bad: "set token or token_file"},
		"user, no scheme":   {url: "secret@a", bad: "names no scheme"},
		"user and scheme":   {url: "http://secret:secret@a", bad: "binary protocol"},
		"scheme in it":      {url: "secret@x://a", bad: "names no scheme"},
		"@ in a path":       {url: "pulsar://a/secret@b", bad: "set token"},
		"too many hosts":    {url: many, bad: "over the limit of 64"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ParseURL(tt.url)
			if tt.bad == "" {
				if err != nil || a.String() != tt.want {
					t.Errorf("got %s, %v; want %s", a, err, tt.want)
				}
				return
			}
			if _, ok := errors.AsType[*AddressError](err); !ok || !strings.Contains(err.Error(), tt.bad) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v; want a refusal with %q and no user", err, tt.bad)
			}
		})
	}
}

// Whatever the text, it is an address whose form means the same, or a refusal that
// does not show what stands before an @.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"pulsar://a:1,b", "pulsar+ssl://[::1]", "pulsar://u:p@h", "u@x://", "pulsar://a/b@c:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseURL(text)
		if err != nil {
			e, ok := errors.AsType[*AddressError](err)
			if !ok || strings.Contains(e.Text, "@") {
				t.Fatalf("%q is refused with %v, shown as %q", text, err, e.Text)
			}
			return
		}
		again, err := ParseURL(a.String())
		if err != nil || !cmp.Equal(a, again) {
			t.Fatalf("%q is %v, which is %v, %v", text, a, again, err)
		}
		for _, h := range a.Hosts {
			if _, _, err := net.SplitHostPort(h); err != nil {
				t.Fatal(fmt.Errorf("%q: %w", text, err))
			}
		}
	})
}
