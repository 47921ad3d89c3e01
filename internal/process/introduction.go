// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/internal/handshake"
)

// coreVersion is go-plugin's own version, the first field of a handshake.
const coreVersion = 1

// introduction is the one line by which a plugin says how it is reached:
// core version | protocol version | network | address | protocol | certificate.
type introduction struct {
	core, version    int
	network, address string
	protocol         string
}

// parseIntroduction reads a line that looks like an introduction; ok is false
// for any other line.
func parseIntroduction(line []byte) (in introduction, ok bool) {
	parts := strings.Split(strings.TrimSpace(string(line)), "|")
	if len(parts) < 4 {
		return in, false
	}
	var err1, err2 error
	in.core, err1 = strconv.Atoi(parts[0])
	in.version, err2 = strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return in, false
	}
	in.network, in.address = parts[2], parts[3]
	if in.network == "" || strings.Trim(in.network, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return in, false
	}
	in.protocol = "netrpc" // what its absence means
	if len(parts) > 4 {
		in.protocol = parts[4]
	}
	return in, true
}

// check says what of it this host cannot use.
func (in introduction) check() *fault {
	switch {
	case in.core != coreVersion:
		return &fault{
			reason: fmt.Sprintf("it speaks version %d of go-plugin's handshake, this host version %d", in.core, coreVersion),
			fix:    "install a plugin that is built with a matching go-plugin",
		}
	case in.version != handshake.Version:
		return &fault{
			reason: fmt.Sprintf("it speaks version %d of the plugin protocol, this host version %d", in.version, handshake.Version),
			fix:    "install a plugin and a host of matching versions",
		}
	case in.protocol != "grpc":
		return &fault{
			reason: fmt.Sprintf("it speaks %q, not grpc", in.protocol),
			fix:    "install a plugin that is built for longshore",
		}
	case in.network != "unix":
		return &fault{
			reason: fmt.Sprintf("it listens on %s, not on a unix socket in its private directory", in.network),
			fix:    "let the plugin listen in the directory that PLUGIN_UNIX_SOCKET_DIR names",
		}
	}
	return nil
}
