// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-liar is a durable queue in a folder, written from
// docs/protocol.md alone: gRPC and generated messages, without the SDK and
// without go-plugin. It keeps every promise unless it is told to lie: by its
// setting "lie", or by a file named "lie" beside the executable.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/conform/liar"
)

const (
	cookie  = "6c6f6e6773686f7265"
	version = "1" // of the protocol
	// wireLimit is the limit of gRPC messages in both directions.
	wireLimit = 65 << 20
)

func main() {
	p := newPlugin()
	conduct, err := conductBeside()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.conduct.Store(conduct)
	cutsLog.Store(conduct.CutsLog)
	if os.Getenv("LONGSHORE_PLUGIN") != cookie && !conduct.AnyCookie {
		fmt.Fprintln(os.Stderr, "longshore-transport-liar is a plugin: a longshore host starts it")
		os.Exit(1)
	}
	go p.leash()
	if !conduct.TakesSignals {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	}
	if err := p.serve(); err != nil {
		logf(levelError, "%v", err)
		os.Exit(1)
	}
}

// conductBeside is what the file beside the executable asks for.
func conductBeside() (*liar.Conduct, error) {
	name := ""
	if exe, err := os.Executable(); err == nil {
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(exe), "lie")); err == nil {
			name = strings.TrimSpace(string(text))
		}
	}
	c, ok := liar.Find(name)
	if !ok {
		return nil, fmt.Errorf("the file lie beside the plugin: there is no lie %q", name)
	}
	return c, nil
}

func (p *plugin) serve() error {
	speaks := os.Getenv("PLUGIN_PROTOCOL_VERSIONS")
	if !slices.Contains(strings.Split(speaks, ","), version) && !p.conduct.Load().AnyVersion {
		return fmt.Errorf("the host speaks versions %q of the protocol, this plugin speaks version %s", speaks, version)
	}
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "liar")
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(wireLimit), grpc.MaxSendMsgSize(wireLimit))
	g.RegisterService(service(), p)
	announced := version
	if p.conduct.Load().Newest {
		announced = slices.Max(strings.Split(speaks, ","))
	}
	if _, err := fmt.Fprintf(os.Stdout, "1|%s|unix|%s|grpc|\n", announced, socket); err != nil {
		return fmt.Errorf("introduce the plugin: %w", err)
	}
	return g.Serve(l)
}
