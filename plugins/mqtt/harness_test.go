// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"flag"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("4") // whatever processors there are: most of what the tests do is wait
	}
	leaktest.Main(m)
}

// kept are settings with a session that the server keeps.
func kept(set settings.Settings) settings.Settings {
	set.CleanStart, set.SessionExpiry = new(false), core.Duration(time.Hour)
	return set
}
