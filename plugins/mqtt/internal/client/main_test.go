// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"testing"

	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(rootsVariable) != "" {
		os.Exit(connectWithSystemRoots())
	}
	leaktest.Main(m)
}
