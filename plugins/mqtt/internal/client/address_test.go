// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]struct {
		address, user, password string
		given                   bool
	}{
		"mqtt://broker":                     {"mqtt://broker:1883", "", "", false},
		"mqtts://broker":                    {"mqtts://broker:8883", "", "", false},
		"MQTTS://broker:443/":               {"mqtts://broker:443", "", "", false},
		"mqtt://broker:65535":               {"mqtt://broker:65535", "", "", false},
		"mqtt://10.0.0.1:1884":              {"mqtt://10.0.0.1:1884", "", "", false},
		"mqtt://[::1]":                      {"mqtt://[::1]:1883", "", "", false},
		"mqtts://[fe80::1%eth0]:8884":       {"mqtts://[fe80::1%eth0]:8884", "", "", false},
		"mqtt://bröker":                     {"mqtt://bröker:1883", "", "", false},
		"mqtt://my_broker.local":            {"mqtt://my_broker.local:1883", "", "", false},
		"mqtt://ann@broker":                 {"mqtt://broker:1883", "ann", "", true},
		"mqtt://ann:@broker":                {"mqtt://broker:1883", "ann", "", true},
		"mqtt://:secret@broker":             {"mqtt://broker:1883", "", "secret", true},
		"mqtt://@broker":                    {"mqtt://broker:1883", "", "", true},
		"mqtt://a%40b:p%3A%2F%40%25@broker": {"mqtt://broker:1883", "a@b", "p:/@%", true},
		"mqtt://ann:a:b+c@broker:1":         {"mqtt://broker:1", "ann", "a:b+c", true},
		"mqtts://ann:%FF%00@[::1]:1":        {"mqtts://[::1]:1", "ann", "\xff\x00", true},
	} {
		a, c, err := ParseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if a.String() != want.address || c.Username != want.user || c.Password.Reveal() != want.password || c.Given != want.given {
			t.Errorf("%s: %s, %q %q %v", text, a, c.Username, c.Password.Reveal(), c.Given)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for text, words := range map[string][]string{
		"":                       {"no scheme", "mqtt://host:1883"},
		"broker:1883":            {"no scheme"},
		"mqtt:broker":            {"no scheme"},
		"ws://broker":            {"ws", "WebSocket", "mqtts"},
		"wss://broker/mqtt":      {"wss", "WebSocket"},
		"tcp://broker:1883":      {"tcp", "mqtt://host:1883"},
		"ssl://broker:1883":      {"ssl"},
		"http://broker":          {`"http"`},
		"://broker":              {"scheme"},
		"mqtt://":                {"host is missing"},
		"mqtt://:1883":           {"host is missing"},
		"mqtt://broker:":         {"port is missing"},
		"mqtt://broker:0":        {`"0" is no port`, "65535"},
		"mqtt://broker:65536":    {"no port"},
		"mqtt://broker:-1":       {"no port"},
		"mqtt://broker:x":        {"no port"},
		"mqtt://::1":             {"brackets"},
		"mqtt://::1:1883":        {"brackets"},
		"mqtt://[::1":            {"bracket"},
		"mqtt://[broker]":        {"no host"},
		"mqtt://[10.0.0.1]":      {"no host"},
		"mqtt://[]":              {"host is missing"},
		"mqtt://a b":             {"no host"},
		"mqtt://a%20b":           {"no host"},
		"mqtt://*":               {"no host"},
		"mqtt://a,b:1883,c:1883": {"one server"},
		"mqtt://broker/x":        {"path"},
		"mqtt://broker?x=1":      {"query"},
		"mqtt://broker#x":        {"fragment"},
		"mqtt://a%zz@broker":     {"percent sign"},
		"mqtt://%FF@broker":      {"UTF-8"},
		"mqtt://a%00@broker":     {"null"},
		"mqtt://" + strings.Repeat("a", 65536) + "@broker": {"65535"},
	} {
		a, c, err := ParseAddress(text)
		if err == nil {
			t.Errorf("%.60s: taken as %s", text, a)
			continue
		}
		if a != (Address{}) || c != (Credentials{}) {
			t.Errorf("%.60s: something beside the error", text)
		}
		e, ok := errors.AsType[*AddressError](err)
		if !ok || e.Fix == "" {
			t.Errorf("%.60s: %v", text, err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%.60s: %q is missing in %s", text, w, err)
			}
		}
	}
}

// However a URL with a password is written, nothing that is made of it shows it.
func TestPasswordsOfAddressesAreNotShown(t *testing.T) {
	for _, text := range []string{
		"mqtt://ann:hunter2@broker", "mqtt://ann:hunter2@broker:99999", "mqtt://ann:hunter2@", "mqtt://ann:hunter2@broker/x",
		"mqtt://ann:hunter2@x@broker", "mqtt://ann:hunter2/x@broker", "mqtt://ann:x?hunter2@broker", "mqtt://ann:x#hunter2@broker:1",
		"mqtt://ann:hunter2%zz@broker", "mqtt://hunter2%FF@broker", "ann:hunter2@broker", "ws://ann:hunter2@broker", "ann:hun://hunter2@broker",
		"mqtt:ann:hunter2@broker", "mqtt:/ann:hunter2@broker", "hunter2@x://broker", "mqtt://ann:hunter2://x@broker?", "x@hunter2@y://z",
		"ann:hunter2@h://broker",
	} {
		a, c, err := ParseAddress(text)
		for _, shown := range []string{fmt.Sprint(a, err), fmt.Sprintf("%+v %#v %+v %#v", a, a, c, c)} {
			if strings.Contains(shown, "hunter2") {
				t.Errorf("%s: %s", text, shown)
			}
		}
		if e, ok := errors.AsType[*AddressError](err); ok && strings.Contains(e.Text+e.Reason+e.Fix, "hunter2") {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"mqtt://ann:secret@broker:1883/", "mqtts://[::1]:8883", "ws://x", "mqtt://a%40:b%zz@c:1?d#e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, c, err := ParseAddress(text)
		if err != nil {
			if _, ok := errors.AsType[*AddressError](err); !ok {
				t.Errorf("%v", err)
			}
			return
		}
		if !c.Given && (c.Username != "" || !c.Password.IsZero()) {
			t.Errorf("a user out of nothing: %+v", c)
		}
		again, _, err := ParseAddress(a.String())
		if err != nil || again != a {
			t.Errorf("%s is read as %s, %v", a, again, err)
		}
	})
}
