// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"io"
	"syscall"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// endOf tells what the end of a connection says about what was sent over it.
func endOf(err error) outbox.End {
	if r, ok := errors.AsType[*client.ReasonError](err); ok {
		if aside(r.Code) {
			return outbox.EndOther
		}
		return outbox.EndByServer
	}
	switch {
	case errors.Is(err, client.ErrLost), errors.Is(err, io.ErrUnexpectedEOF): // the latter is TLS without its farewell
		return outbox.EndByServer
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return outbox.EndReset
	}
	return outbox.EndOther
}

// aside reports whether a DISCONNECT names a reason that has nothing to do with what
// one packet holds (3.14.2.1).
func aside(code byte) bool {
	switch code {
	case packet.CodeBusy, packet.CodeShuttingDown, packet.CodeKeepAlive, packet.CodeTakenOver, packet.CodeRateTooHigh,
		packet.CodeQuota, packet.CodeAdministrative, packet.CodeUseAnother, packet.CodeMoved, packet.CodeConnectionRate,
		packet.CodeConnectTime:
		return true
	}
	return false
}
