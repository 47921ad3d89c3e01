// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Serve runs a plugin: it is the whole main of longshore-transport-<name>. It
// does not return.
//
//  1. Started by a host, it serves t until the host drops the leash, which is
//     the plugin's standard input: at its end the host is gone. Then nothing is
//     received or settled any more, accepted publishes are flushed for at most
//     one second, and the process ends.
//  2. Started by hand with --describe it prints what the transport is, as JSON.
//  3. Started by hand with --listen it serves hosts that are told its address,
//     which it prints: for debuggers.
//  4. Started by hand otherwise it says what it is and exits with status 1.
//
// # Caveats
//
// Served, os.Stdin is empty. What is printed to os.Stdout or os.Stderr becomes
// the host's log, as warnings; use the Logger of Settings. Interrupt, terminate,
// hangup and broken pipe are ignored: the host decides when the plugin ends.
func Serve(t Transport) {
	if os.Getenv(handshake.CookieKey) != handshake.CookieValue {
		os.Exit(byHand(t, os.Args[1:]))
	}
	if spoken := os.Getenv(handshake.EnvVersions); !slices.Contains(strings.Split(spoken, ","), strconv.Itoa(handshake.Version)) {
		// go-plugin would announce its own version all the same.
		fmt.Fprintf(os.Stderr, "%s speaks version %d of the plugin protocol, and its host speaks %q: install a plugin and a host that fit\n",
			filepath.Base(os.Args[0]), handshake.Version, spoken)
		os.Exit(1)
	}
	p := newPlugin(t)
	go p.leash()
	p.serve()
	if !p.introduced.Load() {
		// go-plugin has said why; the host would wait for nothing. Perhaps there
		// is no host any more and the leash is just removing the directory.
		removeRunDir(os.Getenv(handshake.EnvRunDir))
		os.Exit(1)
	}
	select {} // only the leash ends the process
}

// hostSignals are what a terminal or a service manager sends to host and plugin
// alike. A plugin that ended at once would take away what the host still
// drains through it.
func hostSignals() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE}
}

// served is a plugin that a host started.
type served struct {
	server *server
	stdin  *os.File // the leash
	stdout *os.File // the handshake's, until the first call
	stderr *os.File // the host's log
	log    *slog.Logger

	introduced atomic.Bool // the handshake is on its way
	settled    sync.Once   // standard output and error have their last place
}

func newPlugin(t Transport) *served {
	p := &served{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	// Caught, not ignored: an ignored signal would stay ignored in children.
	// Nobody reads the channel; what does not fit is dropped.
	signal.Notify(make(chan os.Signal, 1), hostSignals()...)
	if null, err := os.Open(os.DevNull); err == nil {
		os.Stdin = null // the leash is nobody else's to read
	}
	level := new(slog.LevelVar)
	p.log = newLogger(p.stderr, level)
	options := serverOptions{Logger: p.log, Level: level}
	if os.Getenv(handshake.EnvStdio) == "1" {
		options.Stdio = inheritedStdio(p.log)
	}
	p.server = newServer(t, options)
	return p
}

// inheritedStdio takes over the descriptors that the host passed on; nil, and a
// line in the log, when they cannot be used.
func inheritedStdio(log *slog.Logger) *Stdio {
	// Children of the plugin would keep the pipe open behind its back.
	unix.CloseOnExec(handshake.StdinFD)
	unix.CloseOnExec(handshake.StdoutFD)
	s, err := newStdio(handshake.StdinFD, handshake.StdoutFD)
	if err != nil {
		log.Error("use the host's standard input and output", "error", err)
		return nil
	}
	return s
}

// serve serves until go-plugin's server is stopped.
func (p *served) serve() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  handshake.Version,
			MagicCookieKey:   handshake.CookieKey,
			MagicCookieValue: handshake.CookieValue,
		},
		Plugins: plugin.PluginSet{handshake.Set: servedPlugin{server: p}},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			p.introduced.Store(true)
			return grpc.NewServer(append(o, link.ServerOptions()...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: p.stderr, JSONFormat: true}),
	})
}

// servedPlugin is the plugin as go-plugin sees it.
type servedPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *served
}

// GRPCServer registers the transport's service.
func (s servedPlugin) GRPCServer(_ *plugin.GRPCBroker, r *grpc.Server) error {
	link.Register(r, firstCall{server: s.server.server, settle: s.server.settleOutput})
	return nil
}

// GRPCClient is for hosts.
func (servedPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, newFault(core.FaultUnsupported, "a plugin is no host")
}

// firstCall does something once before the call that opens the conversation.
type firstCall struct {
	*server
	settle func()
}

// Describe answers what the transport is.
func (f firstCall) Describe(ctx context.Context, r *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error) {
	f.settle()
	return f.server.Describe(ctx, r)
}

// settleOutput sends all output to the log. go-plugin has put pipes of its own
// in place of os.Stdout and os.Stderr by now, whose other end a host may or may
// not read; and descriptor 1, where C libraries and children print, is the
// handshake's, which the host has read.
func (p *served) settleOutput() {
	p.settled.Do(func() {
		if err := unix.Dup2(int(p.stderr.Fd()), int(p.stdout.Fd())); err != nil {
			p.log.Warn("redirect standard output", "error", err)
		}
		os.Stdout, os.Stderr = p.stdout, p.stderr
	})
}
