// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-memory is the memory transport as a plugin
// process, for tests.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/longshore-go/longshore/internal/memory/transport"
	"github.com/longshore-go/longshore/pluginapi"
)

// beginLimit bounds the wait for a broker that the environment names; a test
// that stops the plugin there needs no longer.
const beginLimit = time.Minute

func main() {
	t := transport.New(transport.Exit(os.Exit))
	ctx, cancel := context.WithTimeout(context.Background(), beginLimit)
	err := t.Begin(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pluginapi.Serve(t)
}
