// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
)

// byHand is what a plugin does that no host started; it returns the exit
// status.
func byHand(t Transport, args []string) int {
	var err error
	switch {
	case len(args) == 1 && args[0] == "--describe":
		err = printSpec(os.Stdout, t)
	case len(args) >= 1 && len(args) <= 2 && args[0] == "--listen":
		err = listen(t, args[1:])
	default:
		fmt.Fprintf(os.Stderr, "%s is a transport plugin of longshore: a host starts it, as does \"longshore run\"; "+
			"by hand only --describe (what it is, as JSON) and --listen [socket] (for a debugger) are of use\n", filepath.Base(os.Args[0]))
		return 1
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		return 1
	}
	return 0
}

// printSpec prints the answer to Describe, its schemas as what they are.
func printSpec(w io.Writer, t Transport) error {
	d, err := describe(slog.New(slog.DiscardHandler), t)
	if err != nil {
		return fmt.Errorf("describe transport: %w", err)
	}
	m := d.message()
	schemas := map[string][]byte{
		"settings_schema": m.SettingsSchema, "subscription_schema": m.SubscriptionSchema, "publish_schema": m.PublishSchema,
	}
	m.SettingsSchema, m.SubscriptionSchema, m.PublishSchema = nil, nil, nil
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	for name, schema := range schemas {
		if len(schema) > 0 {
			fields[name] = schema
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", "  "); err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// listen serves hosts that dial, one after the other, until it is interrupted.
// There is no leash and there are no heartbeats, so it can stand at a
// breakpoint. Standard input and output are the hosts'.
func listen(t Transport, args []string) error {
	d, err := describe(slog.New(slog.DiscardHandler), t)
	if err != nil {
		return fmt.Errorf("describe transport: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	path, remove, err := socketPath(args)
	if err != nil {
		return err
	}
	defer remove()
	lis, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = lis.Close() }()
	defer context.AfterFunc(ctx, func() { _ = lis.Close() })()

	fmt.Fprintf(os.Stderr, "serving transport %s; give a host this, and end with Ctrl-C:\n", d.spec.Name)
	fmt.Fprintf(os.Stderr, "export %s=%s=%s\n", handshake.EnvReattach, d.spec.Name, path)
	for {
		conn, err := lis.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if err := serveConn(ctx, t, conn); err != nil {
			return err
		}
	}
}

// socketPath is the path given, or one in a new private directory.
func socketPath(args []string) (path string, remove func(), err error) {
	if len(args) == 1 {
		path, err = filepath.Abs(args[0])
		return path, func() {}, err
	}
	dir, err := os.MkdirTemp("", "longshore-listen-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory for the socket: %w", err)
	}
	return filepath.Join(dir, "socket"), func() { _ = os.RemoveAll(dir) }, nil
}

// serveConn serves one host: one life of an endpoint.
func serveConn(ctx context.Context, t Transport, conn net.Conn) error {
	stdio, err := NewStdio(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	defer func() { _ = stdio.Close() }()
	level := new(slog.LevelVar)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	s := newServer(t, serverOptions{Logger: log, Level: level, Stdio: stdio})
	g := grpc.NewServer(link.ServerOptions()...)
	link.Register(g, s)
	defer context.AfterFunc(ctx, g.Stop)()

	lone := newLoneListener(conn)
	err = g.Serve(lone)
	g.Stop()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	s.abandon(flush)
	if err != nil && !errors.Is(err, errHostGone) && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// errHostGone ends the service of one connection.
var errHostGone = errors.New("the host has closed the connection")

// loneListener is a listener of one connection; it ends with it.
type loneListener struct {
	net.Conn
	once   sync.Once
	taken  bool
	closed chan struct{}
}

func newLoneListener(conn net.Conn) *loneListener {
	return &loneListener{Conn: conn, closed: make(chan struct{})}
}

// Accept returns the connection, and then waits for its end.
func (l *loneListener) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return l, nil
	}
	<-l.closed
	return nil, errHostGone
}

// Close closes the connection.
func (l *loneListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// Addr is the connection's.
func (l *loneListener) Addr() net.Addr { return l.LocalAddr() }
