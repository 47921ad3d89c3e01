// SPDX-License-Identifier: Apache-2.0

package core

// Table is what Explain says of one registration: a row for each outcome and
// class of attempts. It prints as text, as Markdown and as JSON.
type Table struct {
	Endpoint     string    `json:"endpoint,omitempty"` // for the heading; set by the caller
	Subscription string    `json:"subscription,omitempty"`
	Policy       string    `json:"policy"`
	Copies       string    `json:"copies,omitempty"`      // where copies go
	DeadLetter   string    `json:"dead_letter,omitempty"` // where dead letters go
	Profiles     []Profile `json:"profiles"`
	Findings     []Finding `json:"findings,omitempty"`
}

// Profile is the part of a table about one capability set.
type Profile struct {
	Source string `json:"source"` // the capabilities in words
	Counts string `json:"counts"` // who counts
	Rows   []Row  `json:"rows"`
}

// Row is one outcome at one class of attempts.
type Row struct {
	Outcome string    `json:"outcome"`
	Attempt string    `json:"attempt"` // "any", or classes such as "first, below cap"
	Plan    string    `json:"plan"`    // the steps, in the language of the settlement reference
	Copy    string    `json:"copy,omitempty"`
	Order   string    `json:"order"`
	Notes   []string  `json:"notes,omitempty"`
	Steps   []RowStep `json:"steps"`
}

// RowStep is one step of a row and what becomes of the message when somebody
// dies after it. The first one stands before every step.
type RowStep struct {
	Step         string `json:"step"`
	Host         Ending `json:"host"`
	SourcePlugin Ending `json:"source_plugin"`
	SourceBroker Ending `json:"source_broker"`
	TargetPlugin Ending `json:"target_plugin,omitempty"`
	TargetBroker Ending `json:"target_broker,omitempty"`
}

// Explain returns what each outcome leads to under p on a source with the
// given profiles.
func Explain(p Policy, profiles []Capabilities, retry, dead Route, d Declared) Table {
	return Table{}
}

// String returns the table as aligned text.
func (t Table) String() string { return "" }

// Markdown returns the table as Markdown.
func (t Table) Markdown() string { return "" }
