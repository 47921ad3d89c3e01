// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
)

// newClient makes go-plugin's client for one start; a client starts once and
// cannot be used again.
//
// Mutual TLS is off: the runner refuses every address but a socket in a
// directory that only this user can enter. It would cost a quarter of the
// throughput and 20 ms a start.
func newClient(r *procRunner, limit time.Duration) *plugin.Client {
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  handshake.Version,
			MagicCookieKey:   handshake.CookieKey,
			MagicCookieValue: handshake.CookieValue,
		},
		Plugins:          plugin.PluginSet{handshake.Set: connPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc:       r.forPlugin,
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: r.dir.path},
		// The limit over the whole start ends it; this one must not be earlier.
		StartTimeout: 2 * limit,
		Logger:       hclog.NewNullLogger(),
		// What a plugin built on go-plugin alone prints through its os.Stdout
		// and os.Stderr; nobody reading it would stop the plugin.
		SyncStdout:      &lineWriter{line: func(b []byte) { r.logged.stdout(b) }},
		SyncStderr:      &lineWriter{line: func(b []byte) { r.logged.stderr(b) }},
		GRPCDialOptions: dialOptions(),
	})
}

// noConnectLimit is longer than any start: gRPC's own limit of 20 s would run on
// while the host is stopped, and hide a start limit that is longer.
const noConnectLimit = 24 * time.Hour

// dialOptions are what every connection to a plugin is made with.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithIdleTimeout(0), // the socket's file is gone: there is no second connection
		// The start limit ends an attempt, by killing the plugin.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: noConnectLimit}),
		grpc.WithChainStreamInterceptor(spareStdio),
	}
}

// spareStdio answers every failure to open go-plugin's stdio stream with the
// one code upon which go-plugin goes on without it. Upon others it forgets the
// connection without closing it. The stream carries what a plugin prints and is
// no reason to fail a start.
func spareStdio(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil && strings.HasPrefix(method, "/plugin.GRPCStdio/") {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return s, err
}

// connPlugin is the plugin as go-plugin sees it: its connection.
type connPlugin struct {
	plugin.NetRPCUnsupportedPlugin
}

// GRPCServer refuses: hosts serve nothing.
func (connPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a host serves no plugin")
}

// GRPCClient hands out the connection.
func (connPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// dispense starts the plugin and returns the connection to it. It blocks while
// the plugin is mute, until it is killed.
func dispense(client *plugin.Client) (link.Link, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(handshake.Set)
	if err != nil {
		return nil, err
	}
	conn, ok := raw.(*grpc.ClientConn)
	if !ok {
		return nil, fmt.Errorf("dispense connection: got %T", raw)
	}
	return link.NewClient(conn), nil
}
