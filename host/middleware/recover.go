// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"runtime/debug"

	"github.com/longshore-go/longshore/host"
)

// Recover turns a panic of what it wraps into a *host.PanicError, so that the
// middleware around it sees an error. The host does so by itself at the end, and
// treats the error as it treats the panic (host.OnPanic). It does not stop
// runtime.Goexit, which nothing can.
func Recover() func(host.Next) host.Next {
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &host.PanicError{Value: v, Stack: string(debug.Stack())}
				}
			}()
			return next(ctx, m)
		}
	}
}
