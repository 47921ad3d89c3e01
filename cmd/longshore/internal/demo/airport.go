// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
)

// airport is what a line holds.
type airport struct {
	IATA        string `json:"iata"`
	ICAO        string `json:"icao"`
	City        string `json:"city"`
	Country     string `json:"country"`
	ElevationFt int    `json:"elevation_ft"`
	Closed      int    `json:"closed"` // year; 0 = open
}

// comeBack is how long the register of Japan asks to wait.
const comeBack = 400 * time.Millisecond

// handle enters an airport into the register and counts what it says.
func (r *register) handle(_ context.Context, m *host.Message[airport]) error {
	said, reason := "panicked", "index out of range: there is no band below sea level"
	defer func() { r.screen.handled(m.Value, m.Attempt(), said, reason) }()
	outcome, err := r.enter(m.Value, m.Attempt())
	said, reason = outcome, ""
	if err != nil {
		reason = err.Error()
	}
	return err
}

// enter returns what becomes of an airport: the registers of some countries make
// it hard.
func (r *register) enter(a airport, attempt uint64) (outcome string, err error) {
	switch {
	case a.Closed > 0:
		return "dropped", host.Drop(fmt.Errorf("closed in %d", a.Closed))
	case a.Country == "XK":
		return "retried", fmt.Errorf("no register knows the country %s", a.Country)
	case a.Country == "CA" && attempt == 1:
		return "retried", fmt.Errorf("the register of %s is busy", a.Country)
	case a.Country == "JP" && attempt == 1:
		return "delayed", host.RetryAfter(comeBack, fmt.Errorf("the register of %s asks to come back later", a.Country))
	}
	r.bands[a.ElevationFt>>10]++ // and here is the defect: some airports lie below sea level
	return "acked", nil
}
