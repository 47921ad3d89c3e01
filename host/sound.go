// SPDX-License-Identifier: Apache-2.0

package host

import "fmt"

// soundError stands for an error of the user's that cannot say what it is.
type soundError struct {
	error
	text string
}

func (e *soundError) Error() string { return e.text }

// Unwrap returns the error itself, for errors.Is and errors.As.
func (e *soundError) Unwrap() error { return e.error }

// sound returns an error whose text can be read: the engine does so, and so do
// loggers, where nobody expects a panic. It is err itself unless its Error panics, as
// that of a nil pointer that was returned as an error does.
func sound(err error) (out error) {
	if err == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			// fmt knows the nil pointers among them.
			out = &soundError{err, fmt.Sprintf("%T that cannot be read: %v", err, err)}
		}
	}()
	_ = err.Error()
	return err
}
