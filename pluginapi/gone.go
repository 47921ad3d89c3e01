// SPDX-License-Identifier: Apache-2.0

package pluginapi

import "context"

// hostGone marks the context of a Close that no host has asked for.
type hostGone struct{}

// HostGone reports whether the context of a [Conn]'s Close says that the host is
// gone without having closed the endpoint. A transport whose peers can be told
// that somebody is missing tells them then; it flushes all the same.
func HostGone(ctx context.Context) bool { return ctx.Value(hostGone{}) != nil }
