// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// A call out of order is answered with what is missing.
func TestOrderOfCalls(t *testing.T) {
	configure := func(b *bench) error {
		r, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{})
		if err == nil && r.GetFault() != nil {
			return errors.New(r.GetFault().GetMessage())
		}
		return err
	}
	inspect := func(b *bench) error {
		_, err := b.link.Inspect(b.ctx, &transportpb.InspectRequest{})
		return err
	}
	connect := func(b *bench) error { _, err := b.link.Connect(b.ctx, &transportpb.ConnectRequest{}); return err }
	request := func(b *bench) error { _, err := b.link.Request(b.ctx, &transportpb.RequestRequest{}); return err }
	closing := func(b *bench) error { _, err := b.link.Close(b.ctx, &transportpb.CloseRequest{}); return err }
	subscribe := func(b *bench) error {
		s, err := b.link.Subscribe(b.ctx)
		if err != nil {
			return err
		}
		_ = s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}})
		var r frame.SubscribeResponse
		return s.Recv(&r)
	}
	publish := func(b *bench) error {
		s, err := b.link.Publish(b.ctx)
		if err != nil {
			return err
		}
		_ = s.CloseSend()
		if _, err = s.Recv(nil); errors.Is(err, errEOF) {
			return nil
		}
		return err
	}
	for _, tc := range []struct {
		name  string
		calls []func(*bench) error
		code  core.FaultCode // of the last call; 0 = it is in order
	}{
		{"inspect first", []func(*bench) error{inspect}, core.FaultConflict},
		{"connect first", []func(*bench) error{connect}, core.FaultConflict},
		{"subscribe first", []func(*bench) error{subscribe}, core.FaultConflict},
		{"publish before connect", []func(*bench) error{configure, publish}, core.FaultConflict},
		{"request before connect", []func(*bench) error{configure, request}, core.FaultConflict},
		{"configure twice", []func(*bench) error{configure, configure}, core.FaultConflict},
		{"connect twice", []func(*bench) error{configure, connect, connect}, core.FaultConflict},
		{"inspect twice", []func(*bench) error{configure, inspect, inspect}, 0},
		{"inspect after connect", []func(*bench) error{configure, connect, inspect}, 0},
		{"publish and subscribe", []func(*bench) error{configure, connect, publish, subscribe}, 0},
		{"close first", []func(*bench) error{closing}, 0},
		{"close twice", []func(*bench) error{configure, connect, closing, closing}, core.FaultClosed},
		{"configure after close", []func(*bench) error{closing, configure}, core.FaultClosed},
		{"inspect after close", []func(*bench) error{configure, closing, inspect}, core.FaultClosed},
		{"connect after close", []func(*bench) error{configure, closing, connect}, core.FaultClosed},
		{"subscribe after close", []func(*bench) error{configure, connect, closing, subscribe}, core.FaultClosed},
		{"publish after close", []func(*bench) error{configure, connect, closing, publish}, core.FaultClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := serve(t, newQueueTransport(everything()))
			last := len(tc.calls) - 1
			for _, call := range tc.calls[:last] {
				if err := call(b); err != nil {
					t.Fatalf("a call in order: %v", err)
				}
			}
			err := tc.calls[last](b)
			var f *core.Fault
			switch {
			case tc.code == 0 && err != nil:
				t.Errorf("a call in order: %v", err)
			case tc.code != 0 && (!errors.As(err, &f) || f.Code != tc.code):
				t.Errorf("answered %v, want a fault of code %d", err, tc.code)
			}
		})
	}
}

// What a transport says of itself is checked where it says it; a breach names
// the field.
func TestBreachesOfTheContract(t *testing.T) {
	bad := core.Capabilities{Requeue: core.RequeueNow} // requeue without acks
	weak := core.Capabilities{Ack: core.AckSingle, MaxHold: 1 << 30}
	strong := everything()
	for _, tc := range []struct {
		name string
		make func(*queueTransport)
		path string
	}{
		{"no name", func(t *queueTransport) { t.spec.Name = "" }, "name"},
		{"ceiling", func(t *queueTransport) { t.spec.Ceilings = []core.Capabilities{strong, bad} }, "ceilings[1].requeue"},
		{"too many ceilings", func(t *queueTransport) { t.spec.Ceilings = make([]core.Capabilities, maxProfiles+1) }, "ceilings"},
		{"too many profiles", func(t *queueTransport) { t.caps = make([]core.Capabilities, maxProfiles+1) }, "registrations[0].profiles"},
		{"too many profiles opened", func(t *queueTransport) { t.offers = make([]core.Capabilities, maxProfiles+1) }, "profiles"},
		{"an address without end", func(t *queueTransport) {
			t.caps = []core.Capabilities{{Ack: core.AckSingle, Address: strings.Repeat("a", maxAddress+1)}}
		}, "registrations[0].profiles[0].address"},
		{"publishing", func(t *queueTransport) { t.spec.Publishing.MaxDelay = -1 }, "publishing.max_delay"},
		{"no endpoint", func(t *queueTransport) { t.configure = func(Settings) (Endpoint, error) { return nil, nil } }, "endpoint"},
		{"profile", func(t *queueTransport) { t.caps = []core.Capabilities{strong, bad} }, "registrations[0].profiles[1].requeue"},
		{"no profile", func(t *queueTransport) { t.caps = nil }, "registrations[0].profiles"},
		{"holds for longer", func(t *queueTransport) { t.caps = []core.Capabilities{{Ack: core.AckSingle}} }, "registrations[0].profiles[0].max_hold"},
		{"wider than the ceiling", func(t *queueTransport) { t.spec.Ceilings = []core.Capabilities{weak} }, "registrations[0].profiles[0].requeue"},
		{"no ceiling", func(t *queueTransport) { t.spec.Ceilings = nil }, "registrations[0].profiles[0]"},
		{"too few registrations", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Registrations = nil }
		}, "registrations"},
		{"too many destinations", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Destinations = make([]TargetReport, 9) }
		}, "destinations"},
		{"shares with nobody", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Registrations[0].Shares = []uint32{7} }
		}, "registrations[0].shares[0]"},
		{"finding without a text", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Registrations[0].Findings = []Finding{{Warning: true}} }
		}, "registrations[0].findings[0].message"},
		{"destination is wider", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Destinations[0].Publishing.Dedups = true }
		}, "destinations[0].publishing.dedups"},
		{"exactly is not a part", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Destinations[0].Exactly = []uint32{0} }
		}, "destinations[0].exactly"},
		{"started is wider", func(t *queueTransport) {
			t.inspect = func(_ Usage, in *Inspection) { in.Registrations[0].Profiles = []core.Capabilities{weak} }
		}, "profiles[0].requeue"},
		{"started is not valid", func(t *queueTransport) { t.offers = []core.Capabilities{bad} }, "profiles[0].requeue"},
		{"started is empty", func(t *queueTransport) { t.offers = []core.Capabilities{} }, "profiles"},
		{"no requester", func(t *queueTransport) {
			t.spec.Requests = true
			t.configure = func(Settings) (Endpoint, error) { return plainEndpoint{queueEndpoint{t}}, nil }
		}, "requests"},
		{"no link reporter", func(t *queueTransport) {
			t.spec.LinkStates = true
			t.configure = func(Settings) (Endpoint, error) { return plainEndpoint{queueEndpoint{t}}, nil }
		}, "link_states"},
		{"no seeker", func(t *queueTransport) {
			t.spec.Seeks = true
			t.wrap = func(s Subscription) Subscription { return plainSubscription{s} }
		}, "seeks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(strong)
			tc.make(tr)
			b := serve(t, tr)
			f := firstFault(b)
			if f == nil {
				t.Fatal("nothing is found")
			}
			if f.Code != core.FaultInternal || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != tc.path || f.Diagnostics[0].Fix == "" {
				t.Errorf("found %+v, want a diagnostic for %s", f, tc.path)
			}
		})
	}
}

// firstFault goes through the calls up to Started and returns the first fault.
func firstFault(b *bench) *core.Fault {
	if _, err := b.link.Describe(b.ctx, &transportpb.DescribeRequest{}); err != nil {
		return faultOf("", err)
	}
	r, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{})
	if err != nil {
		return faultOf("", err)
	}
	if f := r.GetFault(); f != nil {
		d := &core.Fault{Code: core.FaultCode(f.GetCode())}
		for _, x := range f.GetDiagnostics() {
			d.Diagnostics = append(d.Diagnostics, core.Diagnostic{Path: x.GetPath(), Fix: x.GetFix()})
		}
		return d
	}
	reg := &transportpb.Registration{Name: "q"}
	if _, err = b.link.Inspect(b.ctx, &transportpb.InspectRequest{
		Registrations: []*transportpb.Registration{reg}, Destinations: []*transportpb.Target{{Name: "d"}},
	}); err != nil {
		return faultOf("", err)
	}
	if _, err = b.link.Connect(b.ctx, &transportpb.ConnectRequest{}); err != nil {
		return faultOf("", err)
	}
	s, err := b.link.Subscribe(b.ctx)
	if err != nil {
		return faultOf("", err)
	}
	_ = s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: reg}})
	var m frame.SubscribeResponse
	if err = s.Recv(&m); err != nil {
		return faultOf("", err)
	}
	return nil
}

// plainEndpoint connects to a Conn without any further power.
type plainEndpoint struct{ queueEndpoint }

func (e plainEndpoint) Connect(ctx context.Context, resume []byte) (Conn, error) {
	c, err := e.queueEndpoint.Connect(ctx, resume)
	return plainConn{c}, err
}

type plainConn struct{ Conn }

type plainSubscription struct{ Subscription }

// Wrong options are findings of their own registration; the transport sees and
// judges the others, under ids of its own.
func TestOptionsAreCheckedBeforeInspect(t *testing.T) {
	type options struct {
		Group string `json:"group" required:"true" doc:"the consumer group"`
		Size  int    `json:"size" min:"1" max:"10" default:"5"`
	}
	tr := newQueueTransport(everything())
	tr.spec.Subscription = SchemaOf[options]()
	var seen Usage
	tr.inspect = func(u Usage, in *Inspection) {
		seen = u
		for i := range in.Registrations {
			in.Registrations[i].Shares = []uint32{0}
			in.Registrations[i].Findings = []Finding{{Warning: true, Message: "seen " + u.Registrations[i].Name}}
		}
		for i := range in.Destinations {
			in.Destinations[i].ReturnsTo = []uint32{1}
		}
	}
	b := serve(t, tr)
	if _, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	r, err := b.link.Inspect(b.ctx, &transportpb.InspectRequest{
		Registrations: []*transportpb.Registration{
			{Id: 0, Name: "a", Options: []byte(`{"group":1,"sise":3}`)},
			{Id: 1, Name: "b", Options: []byte(`{"group":"g"}`)},
			{Id: 2, Name: "c"},
			{Id: 3, Name: "d", Options: []byte(`{"group":"g","size":3}`)},
		},
		Destinations: []*transportpb.Target{
			{Name: "x", For: []uint32{0, 3}},
			{Name: "y", Options: []byte(`{"z":1}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	profiles := []*transportpb.Capabilities{r.GetRegistrations()[1].GetProfiles()[0]}
	want := &transportpb.InspectResponse{
		Registrations: []*transportpb.RegistrationReport{
			{Findings: []*transportpb.Finding{
				{Option: "group", Message: "is a number", Fix: "give a text"},
				{Option: "sise", Message: "is not known", Fix: "did you mean size?"},
			}},
			{Profiles: profiles, Shares: []uint32{1}, Findings: []*transportpb.Finding{{Warning: true, Message: "seen b"}}},
			{Findings: []*transportpb.Finding{{Option: "group", Message: "is missing", Fix: "set it: the consumer group"}}},
			{Profiles: profiles, Shares: []uint32{1}, Findings: []*transportpb.Finding{{Warning: true, Message: "seen d"}}},
		},
		Destinations: []*transportpb.TargetReport{
			{Publishing: r.GetDestinations()[0].GetPublishing(), ReturnsTo: []uint32{3}},
			{Findings: []*transportpb.Finding{{Option: "z", Message: "is not known", Fix: "leave it out: nothing can be set here"}}},
		},
	}
	if d := cmp.Diff(want, r, protocmp.Transform()); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
	if len(seen.Registrations) != 2 || len(seen.Destinations) != 1 || !cmp.Equal([]uint32{1}, seen.Destinations[0].For) {
		t.Errorf("the transport saw %+v", seen)
	}
	var o options
	if err := seen.Registrations[0].Options.Bind(&o); err != nil || o != (options{"g", 5}) {
		t.Errorf("bound %+v, %v", o, err)
	}
}

// L-05, E-12: wrong settings are answered with the field and the fix, and the
// transport does not see them.
func TestWrongSettings(t *testing.T) {
	type settings struct {
		URL   string      `json:"url" required:"true"`
		Token core.Secret `json:"token"`
	}
	tr := newQueueTransport(everything())
	tr.spec.Settings = SchemaOf[settings]()
	var got settings
	tr.configure = func(s Settings) (Endpoint, error) {
		if err := s.Bind(&got); err != nil {
			return nil, err
		}
		if got.URL == "refused" {
			return nil, errors.New("no such host")
		}
		return queueEndpoint{tr}, nil
	}
	b := serve(t, tr)
	configure := func(raw string) *transportpb.Fault {
		r, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{Endpoint: "e", Settings: []byte(raw)})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetFault()
	}
	f := configure(`{"token":17}`)
	want := []*transportpb.Diagnostic{
		{Path: "url", Message: "is missing", Fix: "set it: it is a text"},
		{Path: "token", Message: "is a number", Fix: "give a text"},
	}
	if d := cmp.Diff(want, f.GetDiagnostics(), protocmp.Transform()); d != "" {
		t.Errorf("diagnostics (-want +got):\n%s", d)
	}
	if f = configure(`{"url":"refused"}`); f.GetCode() != transportpb.FaultCode_FAULT_CODE_INVALID {
		t.Errorf("error of the transport: %v", f)
	}
	if f = configure(`{"url":"u","token":"t"}`); f != nil || got.Token.Reveal() != "t" {
		t.Errorf("right settings: %v, bound %q", f, got.URL)
	}
}

func TestStdioMustBeAttached(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.WantsStdio = true
	b := serve(t, tr)
	r, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{})
	if err != nil || r.GetFault().GetCode() != transportpb.FaultCode_FAULT_CODE_INVALID {
		t.Errorf("without stdio: %v %v", r, err)
	}
	if r, err = b.link.Configure(b.ctx, &transportpb.ConfigureRequest{Stdio: true}); err != nil || r.GetFault() == nil {
		t.Errorf("with stdio that did not come: %v %v", r, err)
	}
}

func TestConnectFails(t *testing.T) {
	tr := newQueueTransport(everything())
	tries := 0
	var resumes []string
	tr.connect = func(resume []byte) error {
		resumes = append(resumes, string(resume))
		switch tries++; tries {
		case 1:
			return &core.Fault{Code: core.FaultUnavailable, Message: "not yet", Transient: true}
		case 2:
			panic("connect went wrong")
		}
		return nil
	}
	b := serve(t, tr)
	if _, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	connect := func() (*transportpb.ConnectResponse, error) {
		return b.link.Connect(b.ctx, &transportpb.ConnectRequest{Resume: []byte("r")})
	}
	if _, err := connect(); faultOf("", err).Code != core.FaultUnavailable {
		t.Errorf("first: %v", err)
	}
	if _, err := connect(); faultOf("", err).Code != core.FaultInternal {
		t.Errorf("second: %v", err)
	}
	r, err := connect()
	if err != nil || string(r.GetResume()) != "connected" {
		t.Errorf("third: %v %v", r, err)
	}
	if d := cmp.Diff([]string{"r", "r", "r"}, resumes); d != "" {
		t.Errorf("resume bytes (-want +got):\n%s", d)
	}
}
