// SPDX-License-Identifier: Apache-2.0

// Command longshore-pulsar runs a Pulsar broker of the tests' kit until it is
// told to end, and prints its URL and the one of its own API. With -archive FILE it ends by itself, and
// leaves an archive of the classes that a broker loads.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

func main() {
	var c pulsarbroker.Config
	flag.StringVar(&c.Archive, "archive", "", "write an archive of classes and end")
	flag.BoolVar(&c.Load, "load", false, "as fast as the machine allows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := pulsarbroker.Run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-pulsar:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}
