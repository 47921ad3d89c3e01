// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/longshore-go/longshore/host/internal/settlement"
)

// PanicError is what a panic of a handler becomes, and a handler that ends its
// goroutine with runtime.Goexit. Middleware that recovers returns it: an error
// that wraps one is treated as [OnPanic] says, unless it is an outcome, as Drop of it
// is.
type PanicError struct {
	Value any    // what was thrown, or an error that says how the handler ended
	Stack string // where; "" = unknown
}

// thrown returns what the panic that is recovered is to its subscription.
func thrown(value any) *PanicError {
	return &PanicError{Value: value, Stack: string(debug.Stack())}
}

// Error names what was thrown.
func (e *PanicError) Error() string {
	if err, ok := e.Value.(error); ok && errors.Is(err, settlement.ErrExited) {
		return err.Error()
	}
	return fmt.Sprintf("handler panicked: %v", e.Value)
}

// Unwrap returns what was thrown where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
