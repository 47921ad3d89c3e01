// SPDX-License-Identifier: Apache-2.0

package core

// String returns the word for it.
func (v AckMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v AckMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *AckMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (AckMode) vocabulary() (string, []string) {
	return "ack mode", []string{"none", "single", "cumulative"}
}

// String returns the word for it.
func (v RequeueMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v RequeueMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *RequeueMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (RequeueMode) vocabulary() (string, []string) {
	return "requeue mode", []string{"none", "now", "delayed"}
}

// String returns the word for it.
func (v RejectMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v RejectMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *RejectMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (RejectMode) vocabulary() (string, []string) {
	return "reject mode", []string{"none", "drops", "dead-letters"}
}

// String returns the word for it.
func (v CountMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v CountMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *CountMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (CountMode) vocabulary() (string, []string) {
	return "count mode", []string{"none", "native"}
}

// String returns the word for it.
func (v Unsettled) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Unsettled) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Unsettled) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Unsettled) vocabulary() (string, []string) {
	return "unsettled", []string{"lost", "on-resume", "on-disconnect", "on-timeout"}
}

// String returns the word for it.
func (v OrderMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v OrderMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *OrderMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (OrderMode) vocabulary() (string, []string) {
	return "order mode", []string{"none", "per-scope", "total"}
}

// String returns the word for it.
func (v Confirm) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Confirm) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Confirm) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Confirm) vocabulary() (string, []string) {
	return "confirm", []string{"nothing", "queued", "handed-over", "stored"}
}

// String returns the word for it.
func (v Retention) String() string { return word(v) }

// MarshalText returns the word for it.
func (v Retention) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *Retention) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (Retention) vocabulary() (string, []string) {
	return "retention", []string{"nothing", "process", "transport"}
}

// String returns the word for it.
func (v HeaderMode) String() string { return word(v) }

// MarshalText returns the word for it.
func (v HeaderMode) MarshalText() ([]byte, error) { return marshalWord(v) }

// UnmarshalText reads the word for it.
func (v *HeaderMode) UnmarshalText(text []byte) error { return unmarshalWord(v, text) }

func (HeaderMode) vocabulary() (string, []string) {
	return "header mode", []string{"none", "native-text", "native-bytes", "enveloped"}
}
