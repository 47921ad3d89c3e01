// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/link"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is a plugin of functions; a missing one answers an unsupported fault.
type server struct {
	describe  func(ctx context.Context, r *pb.DescribeRequest) (*pb.DescribeResponse, error)
	request   func(ctx context.Context, r *pb.RequestRequest) (*pb.RequestResponse, error)
	subscribe func(s link.ServerSubscribeStream) error
	publish   func(s link.ServerPublishStream) error
	supervise func(s link.ServerSuperviseStream) error
}

var errUnsupported = &core.Fault{Code: core.FaultUnsupported, Message: "not here"}

func (s *server) Describe(ctx context.Context, r *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	if s.describe == nil {
		return &pb.DescribeResponse{Name: "test", Version: r.GetHost()}, nil
	}
	return s.describe(ctx, r)
}

func (s *server) Configure(_ context.Context, r *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	return &pb.ConfigureResponse{Fault: &pb.Fault{Message: r.GetEndpoint()}}, nil
}

func (s *server) Inspect(_ context.Context, r *pb.InspectRequest) (*pb.InspectResponse, error) {
	return &pb.InspectResponse{Registrations: make([]*pb.RegistrationReport, len(r.GetRegistrations()))}, nil
}

func (s *server) Connect(_ context.Context, r *pb.ConnectRequest) (*pb.ConnectResponse, error) {
	return &pb.ConnectResponse{Resume: r.GetResume()}, nil
}

func (s *server) Request(ctx context.Context, r *pb.RequestRequest) (*pb.RequestResponse, error) {
	if s.request == nil {
		return nil, errUnsupported
	}
	return s.request(ctx, r)
}

func (s *server) Close(context.Context, *pb.CloseRequest) (*pb.CloseResponse, error) {
	return &pb.CloseResponse{Resume: []byte("port 4711")}, nil
}

func (s *server) Subscribe(st link.ServerSubscribeStream) error {
	if s.subscribe == nil {
		return errUnsupported
	}
	return s.subscribe(st)
}

func (s *server) Publish(st link.ServerPublishStream) error {
	if s.publish == nil {
		return errUnsupported
	}
	return s.publish(st)
}

func (s *server) Supervise(st link.ServerSuperviseStream) error {
	if s.supervise == nil {
		return errUnsupported
	}
	return s.supervise(st)
}

// opener opens a link to s and returns what breaks it as a death would.
type opener func(t testing.TB, s link.Server) (l link.Link, die func())

// kinds are the links that the contract is tested over.
func kinds(t *testing.T, test func(t *testing.T, open opener)) {
	t.Helper()
	for name, open := range map[string]opener{"grpc": overGRPC, "local": overLocal} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func overLocal(t testing.TB, s link.Server) (link.Link, func()) {
	l := link.Local(s)
	t.Cleanup(func() {
		l.Break(errors.New("end of test"))
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := l.Wait(ctx); err != nil {
			t.Errorf("server goes on after the end: %v", err)
		}
	})
	return l, func() { l.Break(errors.New("killed")) }
}

// overGRPC serves s on a Unix socket.
func overGRPC(t testing.TB, s link.Server) (link.Link, func()) {
	g := grpc.NewServer(link.ServerOptions()...)
	link.Register(g, s)
	conn := serve(t, g)
	return link.NewClient(conn), g.Stop
}

// serve serves g and connects to it.
func serve(t testing.TB, g *grpc.Server) *grpc.ClientConn {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// limit bounds every wait of the tests.
const limit = 2 * time.Minute

// within fails the test when f takes longer than the limit.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.NewTimer(limit).C:
		t.Fatalf("%s: no end after %v", what, limit)
	}
}
