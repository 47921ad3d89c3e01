// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"log/slog"

	"github.com/longshore-go/longshore/internal/link"
)

// Instance is one life of a transport, ready to be called by a host: what Serve
// puts behind a socket and package inproc behind plain calls. Authors of
// transports need neither it nor its methods, and only this module can use what
// they return.
type Instance struct{ server *server }

// NewInstance returns a life of t that logs to logger and passes on stdio. Both
// may be nil.
func NewInstance(t Transport, logger *slog.Logger, stdio *Stdio) *Instance {
	return &Instance{server: newServer(t, serverOptions{Logger: logger, Stdio: stdio})}
}

// Server returns what the host calls.
func (i *Instance) Server() link.Server { return i.server }

// Abandon tells the transport that its host is gone: nothing is received any
// more, no verdict is carried out, accepted publishes are flushed within ctx and
// the connection is closed. A Close that looks at its context has some time
// beyond that to return.
func (i *Instance) Abandon(ctx context.Context) {
	i.server.abandonWithin(ctx, i.server.options.AuthorLimit)
}
