// SPDX-License-Identifier: Apache-2.0

package settlement

import "fmt"

// plainTypes are the types of errors that tell nothing of what went wrong: those
// of fmt and errors, and what the host itself puts around errors.
var plainTypes = map[string]bool{
	"*fmt.wrapError": true, "*fmt.wrapErrors": true, "*errors.joinError": true, "*errors.errorString": true,
	"*host.outcomeError": true, "*host.soundError": true,
}

// typeOf names the type of an error for people: the outermost one that tells
// something, else its own.
func typeOf(err error) string {
	if telling := tellingType(err); telling != "" {
		return telling
	}
	return fmt.Sprintf("%T", err)
}

// tellingType returns "" where no type tells anything. It unwraps plain types
// alone, whose code is known.
func tellingType(err error) string {
	if err == nil {
		return ""
	}
	name := fmt.Sprintf("%T", err)
	if !plainTypes[name] {
		return name
	}
	switch e := err.(type) { //nolint:errorlint // it is asked how it wraps
	case interface{ Unwrap() error }:
		return tellingType(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if telling := tellingType(inner); telling != "" {
				return telling
			}
		}
	}
	return ""
}
