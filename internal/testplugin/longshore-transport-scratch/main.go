// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-scratch follows section 9 of docs/protocol.md
// word by word, without the SDK and without go-plugin: gRPC, generated messages
// and nothing else, as a plugin in another language would. It counts from 1.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func main() {
	if os.Getenv("LONGSHORE_PLUGIN") != "6c6f6e6773686f7265" {
		fmt.Fprintln(os.Stderr, "longshore-transport-scratch is a plugin: a longshore host starts it")
		os.Exit(1)
	}
	go leash()
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "{\"@level\":\"error\",\"@message\":%q}\n", err)
		os.Exit(1)
	}
}

// leash exits when the host is gone. There is nothing to flush.
func leash() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = os.RemoveAll(os.Getenv("LONGSHORE_RUN_DIR"))
	os.Exit(0)
}

func serve() error {
	if !slices.Contains(strings.Split(os.Getenv("PLUGIN_PROTOCOL_VERSIONS"), ","), "1") {
		return fmt.Errorf("the host speaks versions %q of the protocol, this plugin version 1", os.Getenv("PLUGIN_PROTOCOL_VERSIONS"))
	}
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "scratch")
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	const limit = 65 << 20
	g := grpc.NewServer(grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit))
	g.RegisterService(service(), &plugin{})
	if _, err := fmt.Fprintf(os.Stdout, "1|1|unix|%s|grpc|\n", socket); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, `{"@level":"info","@message":"scratch is served","language":"any"}`)
	return g.Serve(l)
}

// service is what generated stubs would be.
func service() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: "longshore.transport.v1.TransportService", HandlerType: (*any)(nil)}
	call(d, "Describe", (*plugin).describe)
	call(d, "Configure", (*plugin).configure)
	call(d, "Inspect", (*plugin).inspect)
	call(d, "Connect", func(*plugin, *pb.ConnectRequest) (*pb.ConnectResponse, error) { return &pb.ConnectResponse{}, nil })
	call(d, "Close", func(*plugin, *pb.CloseRequest) (*pb.CloseResponse, error) { return &pb.CloseResponse{}, nil })
	for name, serve := range map[string]func(grpc.ServerStream) error{"Subscribe": subscribe, "Publish": publish, "Supervise": supervise} {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return serve(s) }})
	}
	return d
}

func call[In, Out any](d *grpc.ServiceDesc, name string, f func(*plugin, *In) (*Out, error)) {
	d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name,
		Handler: func(p any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(In)
			if err := decode(in); err != nil {
				return nil, err
			}
			return f(p.(*plugin), in)
		}})
}

type plugin struct{}

// profile is what a counter can do: it takes acks and gives nothing twice.
func profile() []*pb.Capabilities {
	return []*pb.Capabilities{{Ack: pb.AckMode_ACK_MODE_SINGLE, Order: pb.OrderMode_ORDER_MODE_TOTAL}}
}

func (*plugin) describe(*pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Name: "scratch", Version: "0.1", Ceilings: profile(), Publishing: &pb.Publishing{}}, nil
}

func (*plugin) configure(r *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if s := string(r.GetSettings()); s != "" && s != "{}" {
		return &pb.ConfigureResponse{Fault: &pb.Fault{Code: pb.FaultCode_FAULT_CODE_INVALID, Message: "scratch has no settings",
			Diagnostics: []*pb.Diagnostic{{Message: "there are settings", Fix: "give none"}}}}, nil
	}
	return &pb.ConfigureResponse{}, nil
}

func (*plugin) inspect(r *pb.InspectRequest) (*pb.InspectResponse, error) {
	out := &pb.InspectResponse{}
	for range r.GetRegistrations() {
		out.Registrations = append(out.Registrations, &pb.RegistrationReport{Profiles: profile()})
	}
	for range r.GetDestinations() {
		out.Destinations = append(out.Destinations, &pb.TargetReport{Publishing: &pb.Publishing{}})
	}
	return out, nil
}

// supervise answers beats.
func supervise(s grpc.ServerStream) error {
	for {
		r := &pb.SuperviseRequest{}
		if err := s.RecvMsg(r); err != nil {
			return orderly(err)
		}
		if beat, ok := r.GetPart().(*pb.SuperviseRequest_Beat); ok {
			if err := s.SendMsg(&pb.SuperviseResponse{Part: &pb.SuperviseResponse_Beat{Beat: beat.Beat}}); err != nil {
				return err
			}
		}
	}
}

// publish takes everything and keeps nothing.
func publish(s grpc.ServerStream) error {
	for {
		r := &pb.PublishRequest{}
		if err := s.RecvMsg(r); err != nil {
			return orderly(err)
		}
		out := &pb.PublishResponse{}
		for _, o := range r.GetItems() {
			out.Receipts = append(out.Receipts, &pb.Receipt{Id: o.GetId(), Status: pb.ReceiptStatus_RECEIPT_STATUS_CONFIRMED})
		}
		if err := s.SendMsg(out); err != nil {
			return err
		}
	}
}

// orderly is nil for the host's half-close.
func orderly(err error) error {
	if err == io.EOF { //nolint:errorlint // gRPC returns it as it is
		return nil
	}
	return err
}

// errFirst is a status with a fault, as every error is.
func errFirst() error {
	st, err := status.New(codes.FailedPrecondition, "subscribe: the first message is start").
		WithDetails(&pb.Fault{Code: pb.FaultCode_FAULT_CODE_CONFLICT, Message: "subscribe: the first message is start"})
	if err != nil {
		return err
	}
	return st.Err()
}
