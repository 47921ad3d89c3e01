// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The networks of addresses.
const (
	TCP = "tcp"
	IPC = "ipc"
)

// everyInterface is how ZeroMQ writes all interfaces of a machine, or any port.
const everyInterface = "*"

// Address is where peers meet. It has been checked; the zero value has not.
type Address struct {
	Network string // TCP or IPC
	Host    string // of tcp: a name, an IP without brackets, "" = all interfaces
	Port    uint16 // of tcp; 0 = one that is chosen
	Path    string // of ipc: the file
}

// AddressError says why an address cannot be used.
type AddressError struct {
	Text   string // as written
	Reason string
	Fix    string
}

// Error names the address, the reason and what to write instead.
func (e *AddressError) Error() string {
	return fmt.Sprintf("address %q: %s; %s", e.Text, e.Reason, e.Fix)
}

// ParseAddress reads an address without any I/O: tcp://host:port or ipc://path,
// the only two transports offered (S-ZMQ-37). To bind, the host may be * for all
// interfaces, the port 0 or * for one that the system chooses; a peer that is
// dialed has both. Errors are *AddressError.
func ParseAddress(text string, bind bool) (Address, error) {
	network, rest, found := strings.Cut(text, "://")
	switch {
	case found && network == TCP:
		return parseTCP(text, rest, bind)
	case found && network == IPC:
		return parseIPC(text, rest)
	case found:
		return Address{}, &AddressError{Text: text, Reason: fmt.Sprintf("%s is not offered, only tcp and ipc are", network), Fix: "write tcp://host:port or ipc:///path"}
	}
	return Address{}, &AddressError{Text: text, Reason: "it names no transport; tcp and ipc are offered", Fix: "write tcp://host:port or ipc:///path"}
}

func parseTCP(text, rest string, bind bool) (Address, error) {
	refuse := func(reason, fix string) (Address, error) {
		return Address{}, &AddressError{Text: text, Reason: reason, Fix: fix}
	}
	if strings.ContainsRune(rest, ';') {
		return refuse("a source address is not offered", "write the peer's address alone, as in tcp://host:5555")
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return refuse("it is not of the form host:port", "write tcp://host:port, an IPv6 address in brackets: tcp://[::1]:5555")
	}
	number, f := parsePort(port, bind)
	if f != "" {
		return refuse(f, "write a number from 1 to 65535, as in tcp://host:5555")
	}
	switch {
	case host == "":
		return refuse("the host is missing", "write tcp://host:port; to bind, * stands for all interfaces")
	case host == everyInterface && !bind:
		return refuse("* names no peer", "write the host that listens, as in tcp://127.0.0.1:5555")
	case host == everyInterface:
		host = ""
	case !isHost(host):
		return refuse(fmt.Sprintf("%q is no host", host), "write a name, an IP or, to bind, *")
	}
	return Address{Network: TCP, Host: host, Port: number}, nil
}

// parsePort returns why a port cannot be used.
func parsePort(port string, bind bool) (uint16, string) {
	if port == everyInterface {
		port = "0"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("%q is no port", port)
	case n == 0 && !bind:
		return 0, "a peer that is dialed has a port"
	}
	return uint16(n), ""
}

// isHost reports whether a host can be looked up at all. Letters of other
// scripts are the resolver's business.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return !strings.ContainsAny(host, " \t\r\n/\\@?#*:[]")
}

func parseIPC(text, path string) (Address, error) {
	refuse := func(reason, fix string) (Address, error) {
		return Address{}, &AddressError{Text: text, Reason: reason, Fix: fix}
	}
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return refuse("it names no file", "write ipc:///path/of/the/socket")
	case path == everyInterface:
		return refuse("a file that is chosen is not offered", "name one: ipc:///path/of/the/socket")
	case strings.HasPrefix(path, "@"):
		return refuse("an abstract socket has no file, and whoever is on the machine may open it", "name a file in a folder that only those can enter who may connect")
	case strings.ContainsRune(path, 0):
		return refuse("a path has no zero byte", "leave it out")
	case len(path) > maxPath:
		return refuse(fmt.Sprintf("the path has %d bytes, the system takes %d", len(path), maxPath), "use a shorter path, or one relative to the working directory")
	}
	return Address{Network: IPC, Path: path}, nil
}

// String is the address as it is written, with * for all interfaces.
func (a Address) String() string {
	switch {
	case a.Network == IPC:
		return IPC + "://" + a.Path
	case a.Host == "":
		return TCP + "://" + everyInterface + ":" + strconv.Itoa(int(a.Port))
	}
	return TCP + "://" + net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// system returns network and address as package net takes them.
func (a Address) system() (network, address string) {
	if a.Network == IPC {
		return "unix", a.Path
	}
	return "tcp", net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}
