// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"crypto/rand"

	"github.com/longshore-go/longshore/host"
)

// headerCorrelationID is the header that ties messages together which come from
// one another.
const headerCorrelationID = "correlation-id"

// correlationKey is the key of the id in a context.
type correlationKey struct{}

// CorrelationID puts the message's header correlation-id into the handler's
// context, or a new random id where it has none. [PublishCorrelationID] puts it
// onto what the handler publishes with that context.
func CorrelationID() func(host.Next) host.Next {
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			id := m.Header(headerCorrelationID)
			if id == "" {
				id = rand.Text()
			}
			return next(WithCorrelationID(ctx, id), m)
		}
	}
}

// WithCorrelationID returns a context that holds an id, for what is published
// without a handler.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, correlationKey{}, id)
}

// CorrelationIDOf returns the id that a context holds, "" for none.
func CorrelationIDOf(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}
