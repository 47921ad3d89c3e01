// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
)

// RunUntil is RunUntilSignal with the signals that come.
func (h *Host) RunUntil(ctx context.Context, caught <-chan os.Signal) error {
	return h.runUntil(ctx, caught)
}

// Crash kills the plugin of an endpoint that is up.
func (h *Host) Crash(endpoint string) {
	if r := h.run.Load(); r != nil {
		if g := r.byName[endpoint].current(); g != nil {
			g.Kill()
		}
	}
}

// Generation returns the number of an endpoint's generation that is up, 0 when
// it is down.
func (h *Host) Generation(endpoint string) uint64 {
	if r := h.run.Load(); r != nil {
		if g := r.byName[endpoint].current(); g != nil {
			return g.Generation.Generation()
		}
	}
	return 0
}
