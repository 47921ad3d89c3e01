// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// check reads the address, and says what is wrong with settings beyond their
// schema. Files are read when it connects.
func (e *endpoint) check() []core.Diagnostic {
	var wrong diagnostics
	s := &e.settings
	var err error
	if e.address, err = client.ParseURL(string(s.URL)); err != nil {
		wrong.url(err)
	} else {
		wrong.tls(e.address, s)
	}
	if !s.Token.IsZero() {
		if s.TokenFile != "" {
			wrong.add("token_file", "is given beside token", "leave one of them out")
		}
		if why := badName(s.Token.Reveal()); why != "" || strings.ContainsAny(s.Token.Reveal(), " ") {
			wrong.add("token", "has characters that no token has", "give it as it was issued, without blanks or line ends")
		}
	}
	for _, f := range []struct{ path, value string }{
		{"default_subscription", s.DefaultSubscription}, {"producer_name", s.ProducerName},
		{"dead_letter_subscription", *s.DeadLetterSubscription}, {"listener_name", s.ListenerName},
	} {
		if why := badName(f.value); why != "" {
			wrong.add(f.path, why, nameFix)
		}
	}
	if !s.Batching {
		const message, fix = "is given, and batching is off", "set batching: true, or leave it out"
		if s.BatchDelay != 0 {
			wrong.add("batch_delay", message, fix)
		}
		if s.BatchMessages != 0 {
			wrong.add("batch_messages", message, fix)
		}
	}
	if s.BatchDelay >= s.PublishTimeout {
		wrong.add("batch_delay", fmt.Sprintf("is %v, and a publish may take %v", time.Duration(s.BatchDelay), time.Duration(s.PublishTimeout)),
			"use less than publish_timeout")
	}
	return wrong
}

// diagnostics are what is wrong with settings.
type diagnostics []core.Diagnostic

func (w *diagnostics) add(path, message, fix string) {
	*w = append(*w, core.Diagnostic{Path: path, Message: message, Fix: fix})
}

// url says what is wrong with the address.
func (w *diagnostics) url(err error) {
	bad, ok := errors.AsType[*client.AddressError](err)
	if !ok {
		w.add("url", err.Error(), "write it as in pulsar://broker:6650")
		return
	}
	w.add("url", fault.Shown(bad.Text)+": "+bad.Reason, bad.Fix)
}

// tls checks the settings of TLS.
func (w *diagnostics) tls(cluster client.Address, s *settings.Settings) {
	if !cluster.TLS {
		for _, f := range []struct {
			path  string
			given bool
		}{
			{"tls_ca", s.TLSCA != ""}, {"tls_cert", s.TLSCert != ""}, {"tls_key", s.TLSKey != ""},
			{"tls_verify_hostname", !*s.TLSVerifyHostname},
		} {
			if f.given {
				w.add(f.path, "is given, and "+cluster.String()+" is not over TLS", "use pulsar+ssl:// in url, or leave it out")
			}
		}
		return
	}
	switch {
	case s.TLSCert != "" && s.TLSKey == "":
		w.add("tls_key", "is missing beside tls_cert", "give the file with the key of the certificate")
	case s.TLSKey != "" && s.TLSCert == "":
		w.add("tls_cert", "is missing beside tls_key", "give the file with the certificate of the key")
	}
}

// nameFix is what to do about a bad name.
const nameFix = "use text without control characters"

// badName says why a text cannot be a name at the broker, "" where it can.
func badName(name string) string {
	if !utf8.ValidString(name) {
		return "is not UTF-8"
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return "has a control character"
		}
	}
	return ""
}
