// SPDX-License-Identifier: Apache-2.0

// Package kit is what a host tells the kit for tests, host/hosttest, and nobody
// else.
package kit

import (
	"context"

	"github.com/longshore-go/longshore/pluginapi"
)

type key struct{}

// Ask returns a context with which a host's Run calls told, once and before it
// starts anything, with the transports of its endpoints that run in process.
func Ask(ctx context.Context, told func(inProcess []pluginapi.Transport)) context.Context {
	return context.WithValue(ctx, key{}, told)
}

// Asked returns what Ask put into ctx, nil without.
func Asked(ctx context.Context) func(inProcess []pluginapi.Transport) {
	told, _ := ctx.Value(key{}).(func([]pluginapi.Transport))
	return told
}
