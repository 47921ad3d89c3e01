// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-bench is the plugin of the benchmarks. Started by
// a host it serves the SDK; with -baseline it serves one of the baselines on a
// socket until its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/bench/source"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/pluginapi"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "-baseline" {
		if err := baseline(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "longshore-transport-bench:", err)
			os.Exit(1)
		}
		return
	}
	pluginapi.Serve(source.Transport{})
}

// baseline serves kind on a socket.
func baseline(kind, socket string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", kind, err)
	}
	var g *grpc.Server
	switch kind {
	case "link":
		g = grpc.NewServer(link.ServerOptions()...)
		link.Register(g, source.Plain{})
	case "generated":
		g = grpc.NewServer()
		source.RegisterGenerated(g)
	case "socket":
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = l.Close()
		}()
		return source.ServeSocket(ctx, l, time.Millisecond)
	default:
		return fmt.Errorf("no baseline %q: use link, generated or socket", kind)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		g.Stop()
	}()
	return g.Serve(l)
}
