// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// The bounds of settings; both travel as whole seconds [MQTT-3.1.2.10, 3.1.2.11.2].
const (
	maxKeepAlive = math.MaxUint16 * time.Second
	// longest leaves out the value that means for ever: a session that nothing
	// ends is nothing a setting should make by mistake.
	longest = (math.MaxUint32 - 1) * time.Second
)

// check reads the address, and says what is wrong with settings beyond their
// schema.
func (e *endpoint) check() []core.Diagnostic {
	var wrong diagnostics
	s := &e.settings
	var err error
	if e.address, e.user, err = client.ParseAddress(string(s.URL)); err != nil {
		wrong.url(err)
	} else {
		wrong.user(&e.user, s)
		wrong.tls(e.address, s)
	}
	wrong.text("client_id", s.ClientID)
	wrong.text("username", s.Username)
	if d := time.Duration(*s.KeepAlive); d < 0 || d > maxKeepAlive || d%time.Second != 0 {
		wrong.add("keep_alive", fmt.Sprintf("is %v", d), "give whole seconds from 0 (off) to 65535")
	}
	wrong.seconds("session_expiry", s.SessionExpiry)
	if s.Will != nil {
		wrong.will(s.Will, s.MaxPacketSize)
		if d, end := time.Duration(s.Will.Delay), time.Duration(s.SessionExpiry); d%time.Second == 0 && d > end { // 3.1.3.2.2
			wrong.add("will.delay", fmt.Sprintf("is %v, and the session, at whose end the will is published, is over after %v", d, end),
				"raise session_expiry, or shorten it")
		}
	}
	return wrong
}

// diagnostics are what is wrong with settings.
type diagnostics []core.Diagnostic

func (w *diagnostics) add(path, message, fix string) {
	*w = append(*w, core.Diagnostic{Path: path, Message: message, Fix: fix})
}

// seconds checks a time that travels as whole seconds.
func (w *diagnostics) seconds(path string, value core.Duration) {
	if d := time.Duration(value); d < 0 || d > longest || d%time.Second != 0 {
		w.add(path, fmt.Sprintf("is %v", d), fmt.Sprintf("give whole seconds, at most %d", int64(longest/time.Second)))
	}
}

// text checks a text of the protocol: a server may close the connection over a
// control character [MQTT-1.5.4].
func (w *diagnostics) text(path, value string) {
	if why := badText(value); why != "" {
		w.add(path, why, "use up to 65535 bytes of text without control characters")
	}
}

// url says what is wrong with the address.
func (w *diagnostics) url(err error) {
	bad, ok := errors.AsType[*client.AddressError](err)
	if !ok {
		w.add("url", err.Error(), "write it as in mqtt://broker:1883")
		return
	}
	w.add("url", shown(bad.Text)+": "+bad.Reason, bad.Fix)
}

// user checks who the endpoint introduces itself as, and takes it over.
func (w *diagnostics) user(user *client.Credentials, s *settings.Settings) {
	const fix = "leave it out there or here"
	switch {
	case user.Given && s.Username != "":
		w.add("username", "is given beside the user in url", fix)
	case user.Given && !s.Password.IsZero():
		w.add("password", "is given beside the user in url", fix)
	case user.Given:
		w.text("url", user.Username)
	default:
		user.Username, user.Password = s.Username, s.Password
	}
	if n := len(user.Password.Reveal()); n > packet.MaxString {
		w.add("password", fmt.Sprintf("has %d bytes", n), "use at most 65535 bytes")
	}
}

// tls checks the settings of TLS. Their files are read when it connects.
func (w *diagnostics) tls(server client.Address, s *settings.Settings) {
	if !server.TLS {
		for _, f := range []struct{ path, value string }{
			{"tls_ca", s.TLSCA}, {"tls_cert", s.TLSCert}, {"tls_key", s.TLSKey}, {"tls_server_name", s.TLSServerName},
		} {
			if f.value != "" {
				w.add(f.path, "is given, and "+server.String()+" is not over TLS", "use mqtts:// in url, or leave it out")
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

// will checks what the server publishes when the connection is lost.
func (w *diagnostics) will(will *settings.Will, limit int64) {
	if message, fix := badTopic(will.Topic); message != "" {
		w.add("will.topic", message, fix)
	}
	w.text("will.content_type", will.ContentType)
	if n := int64(len(will.Payload)); n > packet.MaxString || n > limit-packetRoom {
		w.add("will.payload", fmt.Sprintf("has %d bytes", n), fmt.Sprintf("use at most %d", min(packet.MaxString, limit-packetRoom)))
	}
	w.seconds("will.delay", will.Delay)
	w.seconds("will.expiry", will.Expiry)
}
