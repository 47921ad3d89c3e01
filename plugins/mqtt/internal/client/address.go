// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// The schemes of addresses, and the ports where an address names none (registered
// with IANA as mqtt and secure-mqtt).
const (
	schemeTCP = "mqtt"
	schemeTLS = "mqtts"
	portTCP   = 1883
	portTLS   = 8883
)

// Address is where a server listens. The zero value is none.
type Address struct {
	TLS  bool
	Host string // a name, or an IP without brackets
	Port uint16
}

// Credentials are the user information of an address.
type Credentials struct {
	Username string // "" = none
	Password core.Secret
	Given    bool // the address has any, be they empty
}

// AddressError says why an address cannot be used. It shows no user information.
type AddressError struct {
	Text   string // the address without user information
	Reason string
	Fix    string
}

// Error names the address, the reason and what to write instead.
func (e *AddressError) Error() string {
	return fmt.Sprintf("address %q: %s; %s", e.Text, e.Reason, e.Fix)
}

// example is what an address looks like.
const example = "write mqtt://host:1883, or mqtts://host:8883 for TLS"

// ParseAddress reads an address without any I/O: mqtt://host:port or
// mqtts://host:port, with port 1883 and 8883 where there is none. User and
// password may stand in front of the host, as in mqtt://user:password@host, both
// percent-encoded. Errors are *AddressError.
func ParseAddress(text string) (Address, Credentials, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	}
	user, rest, given := cutUser(rest)
	shown := rest
	if found {
		shown = scheme + "://" + rest
	}
	refuse := func(reason, fix string) (Address, Credentials, error) {
		return Address{}, Credentials{}, &AddressError{Text: shown, Reason: reason, Fix: fix}
	}
	a := Address{TLS: strings.EqualFold(scheme, schemeTLS)}
	if !found {
		return refuse("it names no scheme", example)
	}
	if !a.TLS && !strings.EqualFold(scheme, schemeTCP) {
		if strings.Contains(scheme, "@") { // the cut was within a password
			shown = ""
			return refuse("it names no scheme", example)
		}
		return refuse(fmt.Sprintf("%s is not offered, only mqtt and mqtts are", named(scheme)), example)
	}
	if reason, fix := a.parseHost(rest); reason != "" {
		return refuse(reason, fix)
	}
	var c Credentials
	if given {
		var reason string
		if c, reason = parseUser(user); reason != "" {
			return refuse(reason, "write each as in a URL: %40 for @, %3A for a colon, %2F for a slash, %25 for a percent sign")
		}
	}
	return a, c, nil
}

// cutUser cuts the user information off, at the last @ there is: so that nothing of a
// password is shown which has one that is not encoded.
func cutUser(rest string) (user, host string, given bool) {
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		return rest[:i], rest[i+1:], true
	}
	return "", rest, false
}

// named is a scheme with what it stands for elsewhere.
func named(scheme string) string {
	switch strings.ToLower(scheme) {
	case "ws", "wss":
		return scheme + " (MQTT over WebSocket)"
	case "tcp", "ssl", "tls", "mqtt+ssl", "tcps":
		return scheme + " (as other clients write it)"
	case "":
		return "an empty scheme"
	}
	return strconv.Quote(scheme)
}

// parseHost reads host and port. It returns why they cannot be used.
func (a *Address) parseHost(rest string) (reason, fix string) {
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/?#") {
		return "a path, a query or a fragment has no meaning for MQTT", "leave it out: mqtt://host:1883"
	}
	host, port := rest, ""
	bracketed := strings.HasPrefix(rest, "[")
	if !bracketed && strings.Count(rest, ":") > 1 {
		return "it has more than one colon", "write an IPv6 address in brackets, as in mqtt://[::1]:1883, and only one server"
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && (!bracketed || rest[i-1] == ']') {
		if host, port = rest[:i], rest[i+1:]; port == "" {
			return "the port is missing behind the colon", example
		}
	}
	if bracketed {
		if !strings.HasSuffix(host, "]") {
			return "a bracket is not closed", "write an IPv6 address in brackets: mqtt://[::1]:1883"
		}
		host = host[1 : len(host)-1]
	}
	switch ip, err := netip.ParseAddr(host); {
	case host == "":
		return "the host is missing", example
	case bracketed != (err == nil && ip.Is6()):
		return fmt.Sprintf("%q is no host", host), "write a name or an IP, an IPv6 address in brackets: mqtt://[::1]:1883"
	case err != nil && (strings.ContainsAny(host, " \t\r\n\\<>^`{|}*%\":[]") || !utf8.ValidString(host)):
		return fmt.Sprintf("%q is no host", host), example
	}
	a.Host, a.Port = host, a.defaultPort()
	if port == "" {
		return "", ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fmt.Sprintf("%q is no port", port), "write a number from 1 to 65535, as in mqtt://host:1883"
	}
	a.Port = uint16(n)
	return "", ""
}

func (a *Address) defaultPort() uint16 {
	if a.TLS {
		return portTLS
	}
	return portTCP
}

// parseUser decodes user information. It returns why it cannot be used, without
// saying what it is.
func parseUser(text string) (c Credentials, reason string) {
	if strings.ContainsAny(text, "/?#@") {
		return Credentials{}, "the user or the password has a character that must be percent-encoded"
	}
	user, password, _ := strings.Cut(text, ":")
	user, userErr := url.PathUnescape(user)
	password, passwordErr := url.PathUnescape(password)
	switch {
	case userErr != nil || passwordErr != nil:
		return Credentials{}, "the user or the password has a percent sign that encodes nothing"
	case !utf8.ValidString(user) || strings.IndexByte(user, 0) >= 0: // 3.1.3.5
		return Credentials{}, "the user is not UTF-8, or has a null character"
	case len(user) > packet.MaxString || len(password) > packet.MaxString:
		return Credentials{}, fmt.Sprintf("the user or the password has more than %d bytes", packet.MaxString)
	}
	return Credentials{Username: user, Password: core.NewSecret(password), Given: true}, ""
}

// String is the address as it is written, with its port and without user
// information.
func (a Address) String() string {
	scheme := schemeTCP
	if a.TLS {
		scheme = schemeTLS
	}
	return scheme + "://" + a.hostPort()
}

// hostPort is the address as package net takes it.
func (a Address) hostPort() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }
