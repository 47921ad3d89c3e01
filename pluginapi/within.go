// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/longshore-go/longshore/core"
)

// The bounds of what a transport may say of itself; each is far beyond what one
// can have, and keeps a defect from filling the host's memory.
const (
	maxProfiles = 256
	maxAddress  = 64 << 10
)

// crowd is the breach of too many capability sets in one place, nil otherwise.
func crowd(where, path string, n int) *core.Fault {
	if n <= maxProfiles {
		return nil
	}
	return breach(where, path, fmt.Sprintf("has %d entries, the limit is %d", n, maxProfiles), "name each set once")
}

// contradiction is the breach of a capability set that contradicts itself, nil
// when it does not.
func contradiction(where, path string, c core.Capabilities) *core.Fault {
	if n := len(c.Address); n > maxAddress {
		return breach(where, path+".address", fmt.Sprintf("has %d bytes, the limit is %d", n, maxAddress), "give a name")
	}
	err := c.Valid()
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*core.CapabilityError](err); ok {
		return breach(where, path+"."+snake(e.Field), e.Reason, e.Fix)
	}
	return breach(where, path, err.Error(), "see core.Capabilities.Valid")
}

// snake writes a field's name as it stands in settings and diagnostics.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// wider names the first field in which c can do more than top, "" when none
// does. named says that top stands for one subscription, whose own address it
// names; a ceiling's address only says that there can be one.
func wider(c, top core.Capabilities, named bool) string {
	if !named && top.Address != "" {
		top.Address = c.Address
	}
	return snake(c.Wider(top))
}

// widerThanAll names the field in which c exceeds the top that it comes nearest
// to, "" when it lies within one of them. Without any top everything exceeds.
func widerThanAll(c core.Capabilities, tops []core.Capabilities, named bool) (field string, wide bool) {
	for i := range tops {
		f := wider(c, tops[i], named)
		if f == "" {
			return "", false
		}
		// With several tops the first one's field is as good as any.
		if field == "" {
			field = f
		}
	}
	return field, true
}

// publishesMore names the first field in which p promises more than top.
func publishesMore(p, top core.Publishing) string {
	switch {
	case p.Confirms > top.Confirms:
		return "confirms"
	case p.Retains > top.Retains:
		return "retains"
	case p.MaxDelay > top.MaxDelay:
		return "max_delay"
	case p.Dedups && !top.Dedups:
		return "dedups"
	case p.Repeats && !top.Repeats:
		return "repeats"
	case !carries(top.Headers, p.Headers):
		return "headers"
	case top.MaxBytes != 0 && (p.MaxBytes == 0 || p.MaxBytes > top.MaxBytes):
		return "max_bytes"
	case top.MaxHeaders != 0 && (p.MaxHeaders == 0 || p.MaxHeaders > top.MaxHeaders):
		return "max_headers"
	}
	return ""
}

// carries reports whether a ceiling of top includes mode. Headers of any bytes
// beside the payload are the most there is; an envelope carries any bytes too,
// but changes the payload.
func carries(top, mode core.HeaderMode) bool {
	switch mode {
	case core.HeadersNone:
		return true
	case core.HeadersNativeText, core.HeadersEnveloped:
		return top == mode || top == core.HeadersNativeBytes
	default:
		return top == mode
	}
}
