// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

// raw is a plugin as another language would write it: the handshake by hand, a
// leash of its own, and the Transport service only.
func raw(mode string) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = os.RemoveAll(os.Getenv(handshake.EnvRunDir))
		os.Exit(0)
	}()
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if mode == "outside" {
		dir = os.Getenv(control.EnvArg)
	}
	path := filepath.Join(dir, "raw.sock")
	lis, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	control.At("handshake")
	say(fmt.Sprintf("1|1|unix|%s|grpc\n", path))
	switch mode {
	case "gone":
		os.Exit(4)
	case "mute":
		conn, err := lis.Accept()
		if err == nil {
			control.At("connect")
			defer func() { _ = conn.Close() }()
		}
		select {}
	case "raw":
		conn, err := lis.Accept() // and say nothing before it may go on
		if err != nil {
			os.Exit(1)
		}
		control.At("connect")
		serve(&first{Listener: lis, conn: conn})
	}
	serve(lis)
}

// first is a listener whose first connection was accepted already.
type first struct {
	net.Listener
	conn net.Conn
}

func (f *first) Accept() (net.Conn, error) {
	if c := f.conn; c != nil {
		f.conn = nil
		return c, nil
	}
	return f.Listener.Accept()
}

func serve(lis net.Listener) {
	g := grpc.NewServer(link.ServerOptions()...)
	link.Register(g, pluginapi.NewInstance(&transport{}, nil, nil).Server())
	_ = g.Serve(lis)
	select {}
}

// chatty is a plugin made with go-plugin alone: its os.Stdout is a pipe that
// stops it when nobody reads the stdio service.
func chatty() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: handshake.Version, MagicCookieKey: handshake.CookieKey, MagicCookieValue: handshake.CookieValue,
		},
		Plugins:    plugin.PluginSet{handshake.Set: chattyPlugin{}},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(o, link.ServerOptions()...)...) },
	})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type chattyPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (chattyPlugin) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error { //nolint:unparam // go-plugin's signature
	link.Register(g, chattyServer{pluginapi.NewInstance(&transport{}, nil, nil).Server()})
	return nil
}

func (chattyPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

type chattyServer struct{ link.Server }

// Configure prints more than a pipe holds.
func (s chattyServer) Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error) {
	for range 100 {
		say(strings.Repeat("z", 4<<10) + "\n")
	}
	return s.Server.Configure(ctx, r)
}
