// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// broadcast is the key of lines that name none: every subscription receives
// them.
const broadcast = "broadcast"

// keyFault is the fault of a bad key.
func keyFault(doing, key string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultInvalid,
		Message:     doing,
		Diagnostics: []core.Diagnostic{{Path: "name", Message: quote(key) + " is no stream key", Fix: streamkey.Fix}},
	}
}
