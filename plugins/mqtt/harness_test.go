// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/paralleltest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

func TestMain(m *testing.M) {
	paralleltest.AtMost(4)
	leaktest.Main(m)
}

// kept are settings with a session that the server keeps.
func kept(set settings.Settings) settings.Settings {
	set.CleanStart, set.SessionExpiry = new(false), core.Duration(time.Hour)
	return set
}
