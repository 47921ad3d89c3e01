// SPDX-License-Identifier: Apache-2.0

package core

// String returns the word for it.
func (v OutcomeKind) String() string { return word(v) }

// MarshalText returns the word for it.
func (v OutcomeKind) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *OutcomeKind) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (OutcomeKind) vocabulary() (string, []string) {
	return "outcome", []string{"leave", "ack", "retry", "retry-after", "drop", "dead-letter", "fail-fast"}
}

// String returns the word for it.
func (v Cause) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Cause) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Cause) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Cause) vocabulary() (string, []string) {
	return "cause", []string{"returned", "error", "panic", "undecodable", "reply-failed"}
}

// String returns the word for it.
func (v Void) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Void) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Void) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Void) vocabulary() (string, []string) {
	return "void", []string{"live", "returns", "gone"}
}

// String returns the word for it.
func (v VerdictKind) String() string { return word(v) }

// MarshalText returns the word for it.
func (v VerdictKind) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *VerdictKind) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (VerdictKind) vocabulary() (string, []string) {
	return "verdict", []string{"unspecified", "ack", "requeue", "reject", "release", "extend"}
}

// String returns the word for it.
func (v FaultCode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v FaultCode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *FaultCode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (FaultCode) vocabulary() (string, []string) {
	return "fault code", []string{
		"unspecified", "invalid", "unsupported", "not-found", "denied", "conflict", "too-large",
		"unavailable", "timeout", "canceled", "exhausted", "closed", "internal",
	}
}
