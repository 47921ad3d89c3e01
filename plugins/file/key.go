// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// The fixes of bad names.
const (
	keyFix     = streamkey.Fix
	patternFix = keyFix + "; a * at the end reads all keys that begin so"
	ownFix     = "use another key"
)

// badKey says why nothing can be published under a name, "" when it can.
func badKey(name string) (message, fix string) {
	switch {
	case !format.ValidKey(name):
		return shown(name) + " is no stream key", keyFix
	case name == format.PrimeKey || name == format.EndKey:
		return name + " is the format's own key", ownFix
	}
	return "", ""
}

// badPattern says why a name cannot be read, "" when it can.
func badPattern(name string) (message, fix string) {
	prefix, pattern := strings.CutSuffix(name, "*")
	switch {
	case !pattern:
		if message, fix = badKey(name); fix == keyFix {
			fix = patternFix
		}
		return message, fix
	case prefix != "" && !format.ValidKey(prefix):
		return shown(name) + " is no pattern of stream keys", patternFix
	}
	return "", ""
}

// exact reports whether a legal name stands for one key.
func exact(name string) bool { return !strings.HasSuffix(name, "*") }

// reads reports whether a subscription with a legal name reads a key.
func reads(name, key string) bool {
	if prefix, pattern := strings.CutSuffix(name, "*"); pattern {
		return strings.HasPrefix(key, prefix) && key != format.PrimeKey && key != format.EndKey
	}
	return name == key
}

// shown is a name in a message, cut where it is long.
func shown(name string) string {
	const most = 300
	if len(name) > most {
		return fmt.Sprintf("%q... (%d bytes)", name[:most], len(name))
	}
	return strconv.Quote(name)
}

// keyFault is the fault of a bad name.
func keyFault(doing, message, fix string) *core.Fault {
	return &core.Fault{
		Code:        core.FaultInvalid,
		Message:     doing,
		Diagnostics: []core.Diagnostic{{Path: "name", Message: message, Fix: fix}},
	}
}
