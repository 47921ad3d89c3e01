// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"net"
	"reflect"
)

// The alerts of TLS that tell of the moment (RFC 8446, section 6).
const (
	alertInternal     = 80
	alertUserCanceled = 90
)

// RefusedByPeer reports whether err says that the other side has ended a TLS connection
// with an alert that trying again does not help against.
func RefusedByPeer(err error) bool {
	alert, ok := remoteAlert(err)
	return ok && alert != alertInternal && alert != alertUserCanceled
}

// remoteAlert is the alert by which the other side has ended a TLS connection. Package
// tls gives it as a number of a type of its own.
func remoteAlert(err error) (byte, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" || op.Err == nil {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return byte(v.Uint()), true
}
