// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// The schemes of addresses and their ports.
const (
	schemePlain = "mqtt"
	schemeTLS   = "mqtts"
	portPlain   = "1883"
	portTLS     = "8883"
)

// urlFix says what addresses there are.
const urlFix = "use mqtt and mqtts, as in mqtt://broker:1883 or mqtts://user:password@broker"

// server is where an endpoint connects to.
type server struct {
	tls      bool
	host     string // without brackets
	address  string // host:port
	username *string
	password *string
}

// shown is the server for people, without user and password.
func (s *server) shown() string {
	if s.tls {
		return schemeTLS + "://" + s.address
	}
	return schemePlain + "://" + s.address
}

// parseURL reads the address of a server. What is wrong with it is said without
// repeating a password.
func parseURL(u settings.URL) (s server, message, fix string) {
	scheme, rest, ok := strings.Cut(string(u), "://")
	switch scheme = strings.ToLower(scheme); {
	case !ok:
		return s, shown(u.String()) + " is no address", urlFix
	case scheme == "ws" || scheme == "wss":
		return s, shown(u.String()) + ": MQTT over WebSocket is not offered", urlFix
	case scheme != schemePlain && scheme != schemeTLS:
		return s, shown(u.String()) + ": the scheme " + shown(scheme) + " is not known", urlFix
	}
	s.tls = scheme == schemeTLS
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if !s.user(rest[:at]) {
			return s, shown(u.String()) + ": user or password are not percent-encoded", "write % as %25, / as %2F, @ as %40, and : in a user as %3A"
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/?#") {
		return s, shown(u.String()) + " has something behind its host and port", "leave out what stands behind them; topics are names of subscriptions and destinations"
	}
	if message, fix = s.place(rest); message != "" {
		message = shown(u.String()) + ": " + message
	}
	return s, message, fix
}

// user reads user and password.
func (s *server) user(text string) bool {
	if strings.ContainsAny(text, "/?#@") {
		return false
	}
	name, secret, has := strings.Cut(text, ":")
	name, err := url.PathUnescape(name)
	if err != nil {
		return false
	}
	s.username = &name
	if has {
		if secret, err = url.PathUnescape(secret); err != nil {
			return false
		}
		s.password = &secret
	}
	return true
}

// place reads host and port.
func (s *server) place(text string) (message, fix string) {
	host, port, err := net.SplitHostPort(text)
	if err != nil { // without a port, or it is wrong
		host, port = text, portPlain
		if s.tls {
			port = portTLS
		}
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		} else if strings.ContainsAny(host, ":[]") {
			return "what follows the scheme is no host and port", "write an IPv6 address in brackets, as in mqtt://[::1]:1883"
		}
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "there is no host", urlFix
	}
	const ports = 1<<16 - 1
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > ports || port[0] == '+' {
		return "the port " + shown(port) + " is none", "give one from 1 to 65535"
	}
	s.host, s.address = host, net.JoinHostPort(host, port)
	return "", ""
}
