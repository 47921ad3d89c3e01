// SPDX-License-Identifier: Apache-2.0

// Package handshake holds what a host and a plugin must agree on before their
// first call: the cookie, the version and the names of environment variables.
// docs/protocol.md spells them out for plugins in other languages.
package handshake

const (
	// CookieKey is the variable by which a plugin knows that a host started it.
	CookieKey = "LONGSHORE_PLUGIN"
	// CookieValue is its value.
	CookieValue = "6c6f6e6773686f7265"

	// Version is the protocol version; it stands for the proto package
	// longshore.transport.v1.
	Version = 1

	// Set is the name under which go-plugin keeps the one plugin served.
	Set = "transport"
)

// Environment variables of a host and of a plugin.
const (
	// EnvVersions names the protocol versions that the host speaks, separated by
	// commas. The name is go-plugin's.
	EnvVersions = "PLUGIN_PROTOCOL_VERSIONS"

	// EnvSocketDir names the directory in which the plugin makes its socket. The
	// name is go-plugin's.
	EnvSocketDir = "PLUGIN_UNIX_SOCKET_DIR"

	// EnvRunDir names the private directory of a generation. A plugin whose
	// host is gone removes it, until it is gone.
	EnvRunDir = "LONGSHORE_RUN_DIR"

	// EnvStdio is "1" where descriptors 3 and 4 are the host's standard input
	// and output, so that a plugin never takes others for them.
	EnvStdio = "LONGSHORE_STDIO"

	// EnvReattach is "name=address": the host dials the address for that
	// endpoint or transport and starts nothing.
	EnvReattach = "LONGSHORE_REATTACH"

	// EnvPluginDir is where a host looks for plugins first.
	EnvPluginDir = "LONGSHORE_PLUGIN_DIR"
)

// FilePrefix begins the file name of every plugin; the transport's name
// follows.
const FilePrefix = "longshore-transport-"

// RunDirPrefix begins the name of every private directory; digits follow. What
// is named so, belongs to the user and is not locked, is swept.
const RunDirPrefix = "longshore-run-"

// The descriptors on which a plugin finds the host's standard input and output
// when its endpoint was attached with them.
const (
	StdinFD  = 3
	StdoutFD = 4
)
