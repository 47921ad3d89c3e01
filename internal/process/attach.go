// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// reattachment is the address at which a plugin that was started by hand
// listens, from LONGSHORE_REATTACH: "name=address", several separated by
// commas. name is an endpoint's or else a transport's.
func reattachment(o Options) (address string, ok bool) {
	found := map[string]string{}
	for entry := range strings.SplitSeq(os.Getenv(handshake.EnvReattach), ",") {
		if name, address, ok := strings.Cut(strings.TrimSpace(entry), "="); ok {
			found[name] = address
		}
	}
	if address, ok = found[o.Endpoint]; !ok || o.Endpoint == "" {
		address, ok = found[o.Name]
	}
	return address, ok
}

// attached is a process that was started by hand, perhaps in a debugger. It has
// no heartbeats, no leash and is never killed, since it may stand at a
// breakpoint. Its generation ends with the connection.
type attached struct {
	conn   *grpc.ClientConn
	stop   context.CancelFunc
	lost   chan struct{}
	closer sync.Once
}

// attach dials an address. It does not use go-plugin's client, which would kill
// the process at the end.
func attach(ctx context.Context, generation uint64, address string, o Options) (*Process, error) {
	target, err := dialTarget(address)
	if err != nil {
		return nil, o.failed("", StageConnect, &fault{
			reason: fmt.Sprintf("%s names the address %q: %v", handshake.EnvReattach, address, err),
			fix:    "use the line that the plugin prints when it is started with --listen",
		})
	}
	conn, err := grpc.NewClient(target, append(dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, o.failed("", StageConnect, &fault{reason: cause(err), err: err})
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.StartLimit, errStartLimit)
	defer cancel()
	l := link.NewClient(conn)
	about, err := l.Describe(limited, &transportpb.DescribeRequest{Host: o.Host})
	if err == nil && about.GetName() != o.Name {
		err = fmt.Errorf("the plugin there is of transport %q", about.GetName())
	}
	if err != nil {
		_ = conn.Close()
		return nil, o.failed("", StageDescribe, &fault{
			reason: fmt.Sprintf("at %s, which %s names: %v", address, handshake.EnvReattach, err), err: err,
			fix: "start the plugin by hand with --listen, or unset the variable",
		})
	}
	o.Heartbeat = -1
	watched, stop := context.WithCancel(context.Background())
	a := &attached{conn: conn, stop: stop, lost: make(chan struct{})}
	go a.watch(watched)
	log := o.logger(generation, 0)
	log.Log(ctx, slog.LevelWarn, "attached to a plugin that was started by hand: no heartbeats, no restart of the process",
		"address", address, "version", about.GetVersion())
	return &Process{body: a, options: o, generation: generation, log: log, link: l, about: about}, nil
}

// dialTarget turns an address into gRPC's form. There is no encryption, so an
// address must not lead to another machine.
func dialTarget(address string) (string, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if unix || filepath.IsAbs(address) {
		if !filepath.IsAbs(path) {
			return "", errors.New("the path of the socket is not absolute")
		}
		return "unix:" + path, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("it is neither the path of a socket nor host:port")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", errors.New("it is not on this machine")
	}
	return "passthrough:///" + net.JoinHostPort(host, port), nil
}

// watch ends the generation with its connection; there is no second one.
func (a *attached) watch(ctx context.Context) {
	defer close(a.lost)
	state := a.conn.GetState()
	// A call may be answered before its connection is told to be ready.
	for _, alive := range []connectivity.State{connectivity.Connecting, connectivity.Ready} {
		for state == alive && a.conn.WaitForStateChange(ctx, state) {
			state = a.conn.GetState()
		}
	}
	a.kill()
}

func (a *attached) pid() int              { return 0 }
func (a *attached) done() <-chan struct{} { return a.lost }
func (a *attached) exit() Exit            { return Exit{Code: -1} }
func (a *attached) stderr() []string      { return nil }

// kill closes the connection.
func (a *attached) kill() {
	a.closer.Do(func() {
		a.stop()
		_ = a.conn.Close()
	})
}

func (a *attached) finish(context.Context, time.Duration) error {
	a.kill()
	<-a.lost
	return nil
}
