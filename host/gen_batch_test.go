// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
)

// Rows about batches: an error for each element, and each its own plan.
func TestGenBatch(t *testing.T) {
	says := func(errs ...error) func([]*host.Message[int]) []error {
		return func([]*host.Message[int]) []error {
			said := errs
			errs = nil // what comes back is handled well
			return said
		}
	}
	for id, r := range map[string]genRow{
		"S-GEN-53": {
			handle: batches(3, says(nil, host.Retry(nil), host.Drop(nil))), rules: []host.Rule{host.MaxAttempts(2)},
			payloads: []string{"1", "2", "3"}, ran: []string{"1+2+3", "2"},
		},
		"S-GEN-54": {
			handle:   batches(3, says(nil, host.Drop(nil))),
			payloads: []string{"1", "2", "3"}, ran: []string{"1+2+3", "3"},
		},
		"S-GEN-55": {
			handle:   batches(2, says(nil, nil, host.Drop(nil))),
			payloads: []string{"1", "2"}, ran: []string{"1+2"},
		},
		"S-GEN-56": {
			handle:   batches(3, says(nil, nil)),
			payloads: []string{"1", "2x", "3"}, ran: []string{"1+3"},
		},
		"S-GEN-57": {
			handle:   batches(2, says()),
			payloads: []string{"1x", "2x"},
		},
		"S-GEN-58": {
			handle: batches(2, func(ms []*host.Message[int]) []error {
				if ms[0].Attempt() == 1 {
					panic("ouch")
				}
				return nil
			}), rules: []host.Rule{host.MaxAttempts(3)},
			payloads: []string{"1", "2"}, ran: []string{"1+2", "1+2"}, anyOrder: true,
		},
		"S-GEN-59": {
			handle:   batches(2, says(host.RetryAfter(20*time.Second, nil), host.RetryAfter(20*time.Second, nil))),
			payloads: []string{"1", "2"}, ran: []string{"1+2", "1+2"}, anyOrder: true, delay: 20 * time.Second,
		},
	} {
		t.Run(id, func(t *testing.T) { r.run(t, id) })
	}
}
