// SPDX-License-Identifier: Apache-2.0

package pluginapi

import "github.com/longshore-go/longshore/core"

// valid calls Valid.
func valid(c core.Capabilities) error {
	if v, ok := any(c).(interface{ Valid() error }); ok {
		return v.Valid()
	}
	return nil
}
