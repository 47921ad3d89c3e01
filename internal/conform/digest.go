// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
)

// Digest returns "sha256:" and the hex digest of what a plugin promises of one
// subscription and one destination, so that a host can see whether what Inspect
// answers is what a card was made for. It is made of this text, each line ended
// by a newline, words as core prints them, limits in nanoseconds:
//
//	longshore capabilities 1
//	profile ack=single requeue=none max_delay=0 max_hold=0 extend=false reject=drops counts=none address=true unsettled=lost durable=false order=total
//	publishing confirms=stored retains=transport max_delay=0 dedups=false headers=native-bytes repeats=true max_bytes=0 max_headers=0
//
// There is one line for each profile, sorted, doubles left out, since the order
// of profiles promises nothing; the last line is "publishing none" where nothing
// can be published. Of an address only whether there is one counts: it is
// another one for every name.
func Digest(profiles []core.Capabilities, publishing *core.Publishing) string {
	lines := make([]string, len(profiles))
	for i, c := range profiles {
		lines[i] = fmt.Sprintf("profile ack=%v requeue=%v max_delay=%d max_hold=%d extend=%t reject=%v counts=%v address=%t unsettled=%v durable=%t order=%v",
			c.Ack, c.Requeue, c.MaxDelay.Nanoseconds(), c.MaxHold.Nanoseconds(), c.Extend, c.Reject, c.Counts, c.Address != "", c.Unsettled, c.Durable, c.Order)
		if c.Recounts {
			lines[i] += " recounts=true"
		}
		if c.Rewinds {
			lines[i] += " rewinds=true"
		}
	}
	slices.Sort(lines)
	lines = append([]string{"longshore capabilities 1"}, slices.Compact(lines)...)
	if p := publishing; p == nil {
		lines = append(lines, "publishing none")
	} else {
		lines = append(lines, fmt.Sprintf("publishing confirms=%v retains=%v max_delay=%d dedups=%t headers=%v repeats=%t max_bytes=%d max_headers=%d",
			p.Confirms, p.Retains, p.MaxDelay.Nanoseconds(), p.Dedups, p.Headers, p.Repeats, p.MaxBytes, p.MaxHeaders))
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	return "sha256:" + hex.EncodeToString(sum[:])
}
