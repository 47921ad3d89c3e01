// SPDX-License-Identifier: Apache-2.0

package conform

import "github.com/longshore-go/longshore/core"

// SettingsError says that the plugin refuses the settings, the subscription or
// the destination that it was given. No case has run.
type SettingsError struct {
	Plugin string
	Step   string // "settings", "subscription", "destination"
	Fault  *core.Fault
}

// Error names the plugin, each field and its fix in one line.
func (e *SettingsError) Error() string {
	return "plugin " + e.Plugin + " refuses the " + e.Step + ": " + e.Fault.Error()
}

// Unwrap returns the fault.
func (e *SettingsError) Unwrap() error { return e.Fault }

// ConnectError says that the plugin cannot reach its transport. No case has run.
type ConnectError struct {
	Plugin string
	Err    error
}

// Error names the plugin and what it says.
func (e *ConnectError) Error() string {
	return "plugin " + e.Plugin + " does not connect: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// SubjectError says that the subject itself lacks something. No case has run.
type SubjectError struct{ Field, Reason, Fix string }

// Error names the field, the reason and the fix.
func (e *SubjectError) Error() string { return e.Field + ": " + e.Reason + "; " + e.Fix }
