// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/core"
)

// code is the first word of what the server answers, which says the kind of its
// errors; "" where the server has answered nothing.
func code(err error) string {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return ""
	}
	word, _, _ := strings.Cut(answer.Error(), " ")
	return word
}

// fault says an error in the host's words. What was being done the host knows.
func (e *endpoint) fault(err error) *core.Fault {
	f := &core.Fault{Message: "redis at " + e.settings.Address + ": " + err.Error()}
	switch code(err) {
	case "": // no answer
		f.Code, f.Transient = core.FaultUnavailable, true
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "UNBLOCKED", "TRYAGAIN", "READONLY", "NOREPLICAS", "MISCONF":
		f.Code, f.Transient = core.FaultUnavailable, true
	case "OOM":
		f.Code, f.Transient = core.FaultExhausted, true
	case "NOGROUP": // opening the subscription again makes it anew
		f.Code, f.Transient = core.FaultNotFound, true
	case "NOAUTH", "WRONGPASS", "NOPERM":
		f.Code = core.FaultDenied
	case "WRONGTYPE":
		f.Code = core.FaultConflict
	default:
		f.Code = core.FaultInternal
	}
	return f
}

// sent reports whether a command may have reached the server although there is no
// answer.
func sent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return code(err) == "" && (!ok || op.Op != "dial")
}
