// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// Status is what became of a case.
type Status string

// The statuses.
const (
	Passed        Status = "passed"
	Failed        Status = "failed"
	NotApplicable Status = "not applicable" // the plugin does not advertise what it is about
	NotRun        Status = "not run"        // the subject lacks what it needs
)

// Result is what became of one case.
type Result struct {
	Case    string // its id
	Claim   string // what the plugin has to do
	Section string // of docs/protocol.md
	Status  Status
	Reason  string        // why it does not apply or was not run
	Faults  []string      // what was wrong, in order
	Notes   []string      // what is worth knowing of a case that passed: duplicates, times
	Log     []string      // last lines of the plugin's log, of failed cases
	Time    time.Duration // that it took
}

// Report is what a run has found.
type Report struct {
	Plugin   Plugin
	Started  time.Time
	Time     time.Duration
	Results  []Result // in the order of Cases
	Selected bool     // not all cases were asked for
}

// Plugin says what was proved.
type Plugin struct {
	Name         string
	Version      string
	Path         string
	Checksum     string // "sha256:hex" of the file
	Protocol     int
	Digest       string // of the capabilities, "sha256:hex"
	Subscription string // as given, with placeholders
	Destination  string
	Settings     map[string]any // as given, secrets left out
	Options      map[string]any // of the subscription, likewise
	Profiles     []core.Capabilities
	Publishing   *core.Publishing // nil = nothing can be published there
}

// Count returns how many cases ended so.
func (r *Report) Count(s Status) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Status == s {
			n++
		}
	}
	return n
}
