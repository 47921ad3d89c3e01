// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(rootsVariable) != "" {
		os.Exit(connectWithSystemRoots())
	}
	goleak.VerifyTestMain(m)
}
