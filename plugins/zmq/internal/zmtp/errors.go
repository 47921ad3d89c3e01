// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Stage is a part of a handshake.
type Stage string

// The stages, in their order.
const (
	StageOptions   Stage = "options"     // our own, before anything is sent
	StageGreeting  Stage = "greeting"    // signature and version: is it ZMTP 3 at all?
	StageMechanism Stage = "mechanism"   // the security mechanism of the greeting
	StageReady     Stage = "READY"       // the command with the peer's socket type
	StageType      Stage = "socket type" // of the peer, which must fit ours
)

// A HandshakeError says where and why a handshake failed. It wraps
// context.DeadlineExceeded, context.Canceled or io.EOF where the peer was
// silent, we gave up, or the peer hung up.
type HandshakeError struct {
	Stage Stage
	Err   error
}

// Error names the stage and the reason.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("ZMTP handshake: %s: %v", e.Stage, e.Err)
}

// Unwrap returns the reason.
func (e *HandshakeError) Unwrap() error { return e.Err }

// failure is the error of a handshake that the library ended with err: what the
// guard has found comes first, then what has become of ctx.
func (g *guard) failure(ctx context.Context, err error) *HandshakeError {
	switch cause := context.Cause(ctx); {
	case g.refused != nil:
		return &HandshakeError{Stage: g.stage, Err: g.refused}
	case cause != nil:
		return &HandshakeError{Stage: g.stage, Err: cause}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &HandshakeError{Stage: g.stage, Err: context.DeadlineExceeded}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &HandshakeError{Stage: g.stage, Err: fmt.Errorf("the peer hung up: %w", io.EOF)}
	default:
		return &HandshakeError{Stage: g.stage, Err: err}
	}
}

// A ProtocolError says that a peer sent what is not ZMTP, or more than the
// limits allow. Nothing behind it can be read: the connection must go.
type ProtocolError struct {
	Reason string
	Limit  int64 // the limit that was passed, 0 = none was
}

// Error names the reason, and the limit where one was passed.
func (e *ProtocolError) Error() string {
	if e.Limit == 0 {
		return "ZMTP: " + e.Reason
	}
	return fmt.Sprintf("ZMTP: %s: the limit is %d", e.Reason, e.Limit)
}
