// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A file reads what it publishes. It has no connection that could be cut, and
// nothing beside it that could be restarted.
func TestConformance(t *testing.T) {
	path := filepath.Join(plugintest.DirWord, "orders.ss")
	for name, s := range map[string]plugintest.Subject{
		"without a group": {
			Settings: settings.Settings{Path: path, Fsync: settings.FsyncEach},
			Options:  settings.Subscription{Start: settings.Beginning()}, // some cases publish before they read
		},
		"with a group": {
			Settings: settings.Settings{Path: path},
			Options:  settings.Subscription{Group: "conform"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Path = pluginPath(t)
			plugintest.Run(t, s)
		})
	}
}
