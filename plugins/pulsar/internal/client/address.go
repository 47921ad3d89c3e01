// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The schemes of service URLs, and the ports where a host names none.
const (
	schemePlain = "pulsar"
	schemeTLS   = "pulsar+ssl"
	portPlain   = 6650
	portTLS     = 6651
)

// maxHosts is how many hosts a service URL may name.
const maxHosts = 64

// Address is a service URL: where brokers, or proxies of them, listen. The zero value
// is none.
type Address struct {
	TLS   bool
	Hosts []string // host:port each, as package net takes it; a try goes to the next one
}

// AddressError says why a service URL cannot be used. It shows no user information.
type AddressError struct {
	Text   string // the URL without user information
	Reason string
	Fix    string
}

// Error names the URL, the reason and what to write instead.
func (e *AddressError) Error() string {
	return fmt.Sprintf("url %q: %s; %s", e.Text, e.Reason, e.Fix)
}

// example is what a service URL looks like.
const example = "write pulsar://host:6650, or pulsar+ssl://host:6651 for TLS"

// ParseURL reads a service URL without any I/O: pulsar://host:port or
// pulsar+ssl://host:port, with port 6650 and 6651 where there is none. Several hosts
// are separated by commas, as in pulsar://a:6650,b:6650. Errors are *AddressError.
func ParseURL(text string) (Address, error) {
	refuse := func(reason, fix string) (Address, error) {
		return Address{}, &AddressError{Text: shown(text), Reason: reason, Fix: fix}
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return refuse("it names no scheme", example)
	}
	a := Address{TLS: strings.EqualFold(scheme, schemeTLS)}
	if !a.TLS && !strings.EqualFold(scheme, schemePlain) {
		return refuse(schemeReason(scheme), example)
	}
	rest = strings.TrimSuffix(rest, "/")
	switch {
	case strings.Contains(rest, "@"):
		return refuse("Pulsar knows no user in a URL", "leave user and password out, and set token or token_file")
	case strings.ContainsAny(rest, "/?#"):
		return refuse("a path, a query or a fragment has no meaning", "leave it out: pulsar://host:6650")
	}
	for _, part := range strings.Split(rest, ",") {
		host, reason, fix := a.parseHost(part)
		if reason != "" {
			return refuse(reason, fix)
		}
		a.Hosts = append(a.Hosts, host)
	}
	if len(a.Hosts) > maxHosts {
		return refuse(fmt.Sprintf("it names %d hosts, over the limit of %d", len(a.Hosts), maxHosts), "name a few, or one that stands for all")
	}
	return a, nil
}

// shown is a service URL without what stands before its last @, where secrets may have
// been put.
func shown(text string) string {
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return text
	}
	scheme, _, found := strings.Cut(text[:i], "://")
	if !found || strings.Contains(scheme, "@") {
		return text[i+1:]
	}
	return scheme + "://" + text[i+1:]
}

// schemeReason says why a scheme is not taken.
func schemeReason(scheme string) string {
	switch strings.ToLower(scheme) {
	case "http", "https":
		return scheme + " is the administration's address; connections use the binary protocol"
	case "":
		return "its scheme is empty"
	}
	if strings.Contains(scheme, "@") { // the cut was within a password
		return "it names no scheme"
	}
	return fmt.Sprintf("the scheme %q is not offered", scheme)
}

// parseHost reads one host with its port. It returns why it cannot be used.
func (a *Address) parseHost(text string) (hostPort, reason, fix string) {
	host, port := text, ""
	bracketed := strings.HasPrefix(text, "[")
	if !bracketed && strings.Count(text, ":") > 1 {
		return "", "a host has more than one colon", "write an IPv6 address in brackets, as in pulsar://[::1]:6650, and commas between hosts"
	}
	if i := strings.LastIndexByte(text, ':'); i >= 0 && (!bracketed || text[i-1] == ']') {
		if host, port = text[:i], text[i+1:]; port == "" {
			return "", "the port is missing behind a colon", example
		}
	}
	if bracketed {
		if !strings.HasSuffix(host, "]") {
			return "", "a bracket is not closed", "write an IPv6 address in brackets: pulsar://[::1]:6650"
		}
		host = host[1 : len(host)-1]
	}
	switch ip, err := netip.ParseAddr(host); {
	case host == "":
		return "", "a host is missing", example
	case bracketed != (err == nil && ip.Is6()):
		return "", fmt.Sprintf("%q is no host", host), "write a name or an IP, an IPv6 address in brackets: pulsar://[::1]:6650"
	case err != nil && (strings.ContainsAny(host, " \t\r\n\\<>^`{|}*%\":;[]") || !utf8.ValidString(host)):
		return "", fmt.Sprintf("%q is no host", host), example
	}
	n := uint64(portPlain)
	if a.TLS {
		n = portTLS
	}
	if port != "" {
		var err error
		if n, err = strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fmt.Sprintf("%q is no port", port), "write a number from 1 to 65535, as in pulsar://host:6650"
		}
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), "", ""
}

// String is the service URL with all ports.
func (a Address) String() string { return a.scheme() + "://" + strings.Join(a.Hosts, ",") }

func (a Address) scheme() string {
	if a.TLS {
		return schemeTLS
	}
	return schemePlain
}
