// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the pipe transport.
package settings

// Settings are the pipe transport's settings. The zero value reads and writes
// lines "[time | key | sequence] payload".
type Settings struct {
	// Loopback brings a message that is published under a key back to the
	// subscriptions of this endpoint that read the key, in place of printing it.
	// Then a subscription has an address of its own, so RetryTo may be left out.
	Loopback bool `json:"loopback,omitempty" doc:"Messages under a key that a subscription here reads come back to it and are not printed."`
	// PlainInput makes every line of the input a payload of every subscription,
	// whatever it looks like, without headers.
	PlainInput bool `json:"plain_input,omitempty" doc:"Every line of the input is a payload, whatever it looks like."`
	// PlainOutput prints payloads alone, one a line. Headers are left away, so
	// copies for a retry cannot be printed, and a payload with a line break is
	// refused.
	PlainOutput bool `json:"plain_output,omitempty" doc:"Payloads are printed alone, one a line, without headers."`
}
