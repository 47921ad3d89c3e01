// SPDX-License-Identifier: Apache-2.0

// Package measure is the host's side of the benchmarks.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/source"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi/inproc"
)

// The names of subjects.
const (
	Hop       = "hop"       // a plugin process behind the SDK
	Link      = "link"      // pooled frames without the SDK
	Generated = "generated" // generated code
	InProc    = "inproc"    // the SDK without a process
	Socket    = "socket"    // a bare Unix socket
)

// Subject is one way from a source to the host.
type Subject struct {
	Name  string
	link  link.Link        // nil of Socket
	conn  *grpc.ClientConn // of Generated: its streams are opened by hand
	path  string           // of Socket, and of the plugin of Service
	pid   int              // of File: its plugin is not asked for its usage
	reads reading          // of File
	close func() error
}

// throughput measures one row for a time.
func (s *Subject) throughput(ctx context.Context, row Row, d time.Duration) (Sample, error) {
	if s.Name == Service {
		return service(ctx, s.path, row, d)
	}
	return Throughput(ctx, s, row, d)
}

// open opens a stream of deliveries.
func (s *Subject) open(ctx context.Context) (consumer, error) {
	if s.Name == Generated {
		desc := &grpc.StreamDesc{StreamName: "Subscribe", ClientStreams: true, ServerStreams: true}
		stream, err := s.conn.NewStream(ctx, desc, source.Method("Subscribe"))
		return &generatedConsumer{stream: stream}, err
	}
	stream, err := s.link.Subscribe(ctx)
	c := &frameConsumer{stream: stream, verdict: core.VerdictAck}
	if s.reads.released {
		c.verdict = core.VerdictRelease
	}
	c.stamped = s.reads.stamped
	return c, err
}

// used returns what the source's process has used; in process there is none.
func (s *Subject) used(ctx context.Context) (u source.Usage, err error) {
	switch s.Name {
	case InProc:
		return u, nil
	case File:
		u.CPU = cpuOf(s.pid)
		return u, nil
	}
	r, err := s.link.Request(ctx, &transportpb.RequestRequest{Outgoing: &transportpb.Outgoing{Name: "usage"}})
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(r.GetReply().GetPayload(), &u)
}

// Close ends the subject.
func (s *Subject) Close() error { return s.close() }

// connect configures and connects the endpoint behind the SDK.
func connect(ctx context.Context, l link.Link, settings []byte) error {
	c, err := l.Configure(ctx, &transportpb.ConfigureRequest{Endpoint: "bench", Generation: 1, Settings: settings})
	if err != nil {
		return err
	}
	if f := c.GetFault(); f != nil {
		return fmt.Errorf("configure: %s", f.GetMessage())
	}
	_, err = l.Connect(ctx, &transportpb.ConnectRequest{})
	return err
}

// StartHop starts the plugin as a host does.
func StartHop(ctx context.Context, plugin string) (*Subject, *process.Process, error) {
	return startPlugin(ctx, Hop, "bench", plugin, nil)
}

// startPlugin starts the plugin of a transport with settings.
func startPlugin(ctx context.Context, name, transport, plugin string, settings []byte) (*Subject, *process.Process, error) {
	p, err := process.Start(ctx, 1, process.Options{Name: transport, Path: plugin, Endpoint: "bench", StartLimit: startLimit})
	if err != nil {
		return nil, nil, err
	}
	s := &Subject{Name: name, link: p.Link(), close: func() error {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		_, err := p.Link().Close(ctx, &transportpb.CloseRequest{})
		return errors.Join(err, p.End(ctx))
	}}
	if err := connect(ctx, s.link, settings); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, p, nil
}

// startLimit bounds the start of a plugin, many times what it takes.
const startLimit = 2 * time.Minute

// endLimit bounds the end of a subject, likewise.
const endLimit = 2 * time.Minute

// StartInProc runs the same transport in this process.
func StartInProc(ctx context.Context) (*Subject, error) {
	g, err := inproc.New(source.Transport{}, inproc.Options{Endpoint: "bench"})
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: InProc, link: g.Link(), close: func() error {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		return g.End(ctx)
	}}
	if err := connect(ctx, s.link, nil); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// StartBaseline starts the plugin's file as the baseline of that name.
func StartBaseline(ctx context.Context, plugin, name string) (*Subject, error) {
	dir, err := os.MkdirTemp("", "longshore-bench-")
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: name, path: filepath.Join(dir, "s")}
	cmd := exec.Command(plugin, "-baseline", name, s.path) //nolint:gosec // the path is the caller's
	cmd.Stderr = os.Stderr
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.close = func() error { return errors.Join(leash.Close(), cmd.Wait(), os.RemoveAll(dir)) }
	if err := s.dial(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// dial waits for the baseline's socket and connects.
func (s *Subject) dial(ctx context.Context) error {
	for {
		if _, err := os.Stat(s.path); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start baseline %s: %w", s.Name, ctx.Err())
		case <-time.NewTimer(time.Millisecond).C:
		}
	}
	if s.Name == Socket {
		return nil
	}
	conn, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s.conn, s.link = conn, link.NewClient(conn)
	end := s.close
	s.close = func() error { return errors.Join(conn.Close(), end()) }
	return nil
}

// ended says whether a stream came to its orderly end.
func ended(err error) bool { return errors.Is(err, io.EOF) }
