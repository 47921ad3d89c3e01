// SPDX-License-Identifier: Apache-2.0

package core

// String returns the word for it.
func (v RouteState) String() string { return word(v) }

// MarshalText returns the word for it.
func (v RouteState) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *RouteState) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (RouteState) vocabulary() (string, []string) {
	return "route state", []string{"none", "open", "refused"}
}

// String returns the word for it.
func (v Action) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Action) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Action) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Action) vocabulary() (string, []string) {
	return "action", []string{
		"none", "no-run", "ack", "requeue", "reject", "release", "hold", "keep", "publish",
		"publish-later", "store", "forget", "forget-later", "park", "log", "stop",
	}
}

// String returns the word for it.
func (v Target) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Target) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Target) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Target) vocabulary() (string, []string) {
	return "target", []string{"none", "retry", "dead"}
}

// String returns the word for it.
func (v LogLevel) String() string { return word(v) }

// MarshalText returns the word for it.
func (v LogLevel) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *LogLevel) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (LogLevel) vocabulary() (string, []string) {
	return "log level", []string{"none", "info", "warn", "warn-once", "error"}
}

// String returns the word for it.
func (v LogCode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v LogCode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *LogCode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (LogCode) vocabulary() (string, []string) {
	return "log code", []string{
		"none", "L-UNS", "L-CAP-DL", "L-CAP-RJ", "L-LOST", "L-DELAY", "L-DEC", "L-PAN", "L-FF",
		"L-REPLY", "L-STREAM", "L-END", "L-LEN", "L-DECL", "L-ABND", "L-NACK", "L-HELD", "L-ERR",
		"L-COPY", "L-DBL", "L-REF", "L-CHECK", "L-COUNT", "L-UNR",
	}
}

// String returns the word for it.
func (v Result) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Result) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Result) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Result) vocabulary() (string, []string) {
	return "result", []string{
		"done", "failed", "stale-returns", "stale-gone", "transient", "refused", "unknown",
		"cut",
	}
}

// String returns the word for it.
func (v Party) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Party) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Party) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Party) vocabulary() (string, []string) {
	return "party", []string{
		"nobody", "host", "source-plugin", "source-broker", "target-plugin", "target-broker",
	}
}
