// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// FaultCode classifies a Fault.
type FaultCode uint8

// The fault codes. They travel between plugin and host.
const (
	FaultUnspecified FaultCode = iota // treated as internal, not transient
	FaultInvalid                      // the request or a setting is wrong; see Diagnostics
	FaultUnsupported                  // not among the capabilities
	FaultNotFound                     // the named thing does not exist
	FaultDenied                       // credentials or permissions
	FaultConflict                     // somebody else holds it
	FaultTooLarge                     // over a size limit, named in the message
	FaultUnavailable                  // not reachable now
	FaultTimeout                      // no answer in time
	FaultCanceled                     // cut by a stop or a cancelled context
	FaultExhausted                    // a bound is reached
	FaultClosed                       // already closed
	FaultInternal                     // a defect
)

// Diagnostic points at one field of settings or options.
type Diagnostic struct {
	Path    string // field path such as "tls.ca_file" or "topics[2]"; "" = the whole
	Message string // what is wrong
	Fix     string // what to do
}

// Fault is an error with a class, which crosses the process boundary whole.
// Nothing ever decides by its text.
type Fault struct {
	Code        FaultCode
	Message     string
	Transient   bool          // trying again can help
	RetryAfter  time.Duration // when; 0 = unknown
	Diagnostics []Diagnostic
}

// Error returns the message, with the first diagnostic where there is one.
func (f *Fault) Error() string {
	if f == nil {
		return "no fault"
	}
	if len(f.Diagnostics) == 0 {
		return f.Message
	}
	d := f.Diagnostics[0]
	s := f.Message
	if d.Path != "" {
		s += ": " + d.Path
	}
	if d.Message != "" {
		s += ": " + d.Message
	}
	if d.Fix != "" {
		s += "; " + d.Fix
	}
	return s
}
