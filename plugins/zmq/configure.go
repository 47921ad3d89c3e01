// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// minHeartbeat is the shortest heartbeat: the time in which a peer has to answer
// travels in tenths of a second.
const minHeartbeat = 100 * time.Millisecond

// addressFix says what addresses there are.
const addressFix = "use tcp and ipc, as in tcp://127.0.0.1:5555 or ipc:///run/jobs.sock"

// check reads the addresses, and says what is wrong with settings beyond their
// schema.
func (e *endpoint) check() []core.Diagnostic {
	var wrong []core.Diagnostic
	add := func(path, message, fix string) {
		wrong = append(wrong, core.Diagnostic{Path: path, Message: message, Fix: fix})
	}
	s := &e.settings
	switch {
	case s.Bind == "" && len(s.Connect) == 0:
		add("bind", "there is no address: neither bind nor connect is given", "give one of them; "+addressFix)
	case s.Bind != "" && len(s.Connect) > 0:
		add("connect", "is given beside bind, and an endpoint either listens or dials", "leave one of them out, or attach two endpoints")
	}
	if s.Bind != "" {
		if a, err := peering.ParseAddress(s.Bind, true); err != nil {
			wrong = append(wrong, badAddress("bind", s.Bind, err))
		} else {
			e.bind = &a
		}
	}
	for i, text := range s.Connect {
		path := fmt.Sprintf("connect[%d]", i)
		a, err := peering.ParseAddress(text, false)
		switch {
		case err != nil:
			wrong = append(wrong, badAddress(path, text, err))
		case slices.Contains(s.Connect[:i], text):
			add(path, text+" is given twice", "leave one of them out")
		}
		e.connect = append(e.connect, a)
	}
	if h := time.Duration(s.Heartbeat); h > 0 && h < minHeartbeat {
		add("heartbeat", fmt.Sprintf("is %v", h), fmt.Sprintf("give at least %v, or 0 for none", minHeartbeat))
	}
	if message, fix := badSecurity(s.Security); message != "" {
		add("security", message, fix)
	}
	return wrong
}

// badAddress says what is wrong with an address.
func badAddress(path, text string, err error) core.Diagnostic {
	d := core.Diagnostic{Path: path, Message: shown(text) + " is no address: " + err.Error(), Fix: addressFix}
	if e, ok := errors.AsType[*peering.AddressError](err); ok {
		d.Message = shown(text) + ": " + e.Reason
		if e.Fix != "" {
			d.Fix = e.Fix
		}
	}
	return d
}

// badSecurity says why a mechanism is refused, "" where it is not.
func badSecurity(mechanism string) (message, fix string) {
	const protect = "leave it out and protect the connection from outside: an ipc socket in a private folder, a tunnel, or a private network"
	switch strings.ToLower(mechanism) {
	case settings.SecurityNull:
		return "", ""
	case "curve":
		return "CURVE is not offered: connections are neither encrypted nor authenticated", protect
	case "plain":
		return "PLAIN is not offered: its passwords would cross the network in clear text", protect
	}
	return fmt.Sprintf("%q is no mechanism", mechanism), "leave it out, or give " + settings.SecurityNull
}
