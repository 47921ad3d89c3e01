// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept are settings with a session that the server keeps.
func kept(set settings.Settings) settings.Settings {
	set.CleanStart, set.SessionExpiry = new(false), core.Duration(time.Hour)
	return set
}
