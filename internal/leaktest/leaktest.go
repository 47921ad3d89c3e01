// SPDX-License-Identifier: Apache-2.0

// Package leaktest fails a package whose tests leave goroutines behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines that are about to end have for it: goleak by
// itself looks for half a second, which a busy machine may need for one of them.
const patience = time.Minute

// Main runs the tests in TestMain and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests, then what ends what they share, and returns the code to
// exit with. It is not zero where they failed or goroutines are left.
func Run(m *testing.M, ends ...func()) int {
	code := m.Run()
	for _, end := range ends {
		end()
	}
	if code != 0 {
		return code
	}
	if err := find(patience); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// find looks for goroutines that are left until there are none, or until the
// time is over.
func find(patience time.Duration, options ...goleak.Option) error {
	for until := time.Now().Add(patience); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}
