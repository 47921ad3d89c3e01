// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/accepted"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// authorLimit bounds the wait for author code that was told to end: a call that
// is still running then is left behind with an error in the log, so that a
// transport that does not look at its context never holds up a stop.
const authorLimit = 5 * time.Second

// serverOptions are what the process around a server gives it.
type serverOptions struct {
	Logger *slog.Logger   // what Settings.Logger is; nil = discarded
	Level  *slog.LevelVar // set by the host; nil = the logger's own
	Stdio  *Stdio         // the host's stdin and stdout, nil = not passed on
	// AuthorLimit replaces the default where it is not 0.
	AuthorLimit time.Duration
}

// server serves one Transport for one endpoint. It keeps the order of calls,
// ids, credit and receipts, checks what the transport says of itself, and holds
// the panics of author code. It implements link.Server.
type server struct {
	transport Transport
	options   serverOptions
	log       *slog.Logger

	// life ends when the host is gone or Close has returned: what is still
	// running of the author's code is told so.
	life context.Context //nolint:containedctx // the server's own, not a call's
	end  context.CancelFunc

	// turn is held by the one lifecycle call that is in author code.
	turn chan struct{}

	goodOptions accepted.Texts // of messages

	mu        sync.Mutex
	described *description
	endpoint  Endpoint
	inspected *inspected
	conn      Conn
	closed    bool
	shutting  *shutting                // nil = not yet
	subs      map[uint32]*subscription // open, by registration
	publish   *publisher               // nil before the first Publish
	supervise supervision
}

// newServer returns a server for t.
func newServer(t Transport, o serverOptions) *server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AuthorLimit == 0 {
		o.AuthorLimit = authorLimit
	}
	life, end := context.WithCancel(context.Background())
	s := &server{
		transport: t, options: o, log: o.Logger, life: life, end: end,
		turn: make(chan struct{}, 1),
		subs: make(map[uint32]*subscription),
	}
	s.supervise.init(s.log)
	return s
}

// take waits for the turn of a lifecycle call.
func (s *server) take(ctx context.Context, call string) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return faultOf(call, ctx.Err())
	}
}

// give ends a turn.
func (s *server) give() { <-s.turn }

// Describe answers what the transport is, once it is found valid.
func (s *server) Describe(ctx context.Context, _ *transportpb.DescribeRequest) (*transportpb.DescribeResponse, error) {
	if err := s.take(ctx, "describe"); err != nil {
		return nil, err
	}
	defer s.give()
	d, err := s.describe()
	if err != nil {
		return nil, err
	}
	return d.message(), nil
}

// describe asks the transport once and keeps its answer. The caller has the turn.
func (s *server) describe() (*description, error) {
	s.mu.Lock()
	d := s.described
	s.mu.Unlock()
	if d != nil {
		return d, nil
	}
	d, err := describe(s.log, s.transport)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.described = d
	s.mu.Unlock()
	return d, nil
}

// Configure checks the settings against the schema and hands them over.
func (s *server) Configure(ctx context.Context, r *transportpb.ConfigureRequest) (*transportpb.ConfigureResponse, error) {
	if err := s.take(ctx, "configure"); err != nil {
		return nil, err
	}
	defer s.give()
	d, err := s.describe()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	done, closed := s.endpoint != nil, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, closedFault("configure")
	case done:
		return nil, misuse("configure", "the endpoint is configured already")
	}
	if f := s.configure(d, r); f != nil {
		return &transportpb.ConfigureResponse{Fault: convert.FromFault(f)}, nil
	}
	return &transportpb.ConfigureResponse{}, nil
}

// configure makes the endpoint; its fault goes into the answer.
func (s *server) configure(d *description, r *transportpb.ConfigureRequest) *core.Fault {
	options, wrong := d.spec.Settings.options(append([]byte(nil), r.GetSettings()...))
	if len(wrong) > 0 {
		return &core.Fault{
			Code: core.FaultInvalid, Message: "settings of transport " + d.spec.Name, Diagnostics: wrong,
		}
	}
	settings := Settings{
		Options: options, Endpoint: r.GetEndpoint(), Generation: r.GetGeneration(), Logger: s.log,
	}
	if r.GetStdio() {
		if s.options.Stdio == nil {
			return newFault(core.FaultInternal, "configure: the host's stdin and stdout did not reach the plugin")
		}
		settings.Stdio = s.options.Stdio
	} else if d.spec.WantsStdio {
		return newFault(core.FaultInvalid,
			"transport %s reads and writes the host's stdin and stdout: attach its endpoint with stdio", d.spec.Name)
	}
	var (
		endpoint Endpoint
		err      error
	)
	if f := contain(s.log, "Configure", func() { endpoint, err = s.transport.Configure(settings) }); f != nil {
		return f
	}
	if err != nil {
		f := faultOf("configure", err)
		if _, said := err.(*core.Fault); !said && f.Code == core.FaultInternal { //nolint:errorlint // the error itself
			f.Code = core.FaultInvalid
		}
		return f
	}
	if endpoint == nil {
		return breach("Configure", "endpoint", "is nil without an error", "return an Endpoint or an error")
	}
	s.mu.Lock()
	s.endpoint = endpoint
	s.mu.Unlock()
	return nil
}

// Connect opens the endpoint.
func (s *server) Connect(ctx context.Context, r *transportpb.ConnectRequest) (*transportpb.ConnectResponse, error) {
	if err := s.take(ctx, "connect"); err != nil {
		return nil, err
	}
	defer s.give()
	s.mu.Lock()
	d, endpoint, done, closed := s.described, s.endpoint, s.conn != nil, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, closedFault("connect")
	case endpoint == nil:
		return nil, misuse("connect", "configure comes before it")
	case done:
		return nil, misuse("connect", "the endpoint is connected already")
	}
	var resume []byte
	if len(r.GetResume()) > 0 {
		resume = append(resume, r.GetResume()...)
	}
	var (
		conn Conn
		err  error
	)
	if f := contain(s.log, "Connect", func() { conn, err = endpoint.Connect(ctx, resume) }); f != nil {
		return nil, f
	}
	switch {
	case err != nil:
		return nil, faultOf("connect", err)
	case conn == nil:
		return nil, breach("Connect", "conn", "is nil without an error", "return a Conn or an error")
	}
	if f := d.powers(conn); f != nil {
		s.drop(ctx, conn)
		return nil, f
	}
	s.mu.Lock()
	if closed = s.closed; !closed {
		s.conn = conn
	}
	s.mu.Unlock()
	if closed {
		s.drop(ctx, conn)
		return nil, closedFault("connect")
	}
	s.listen(d, conn)
	return &transportpb.ConnectResponse{Resume: s.supervise.resumed(), Addresses: s.addresses(conn)}, nil
}

// addresses asks the connection where it listens.
func (s *server) addresses(conn Conn) []string {
	a, ok := conn.(Addresser)
	if !ok {
		return nil
	}
	var all []string
	_ = contain(s.log, "Addresses", func() { all = a.Addresses() }) // its panic is logged
	kept, left := convert.Addresses(all)
	if left > 0 {
		s.log.Error("transport's addresses are left out: over the limits, or no printable text", "addresses", left, "kept", len(kept))
	}
	return kept
}

// listen lets the connection report its link and its resume bytes.
func (s *server) listen(d *description, conn Conn) {
	if l, ok := conn.(LinkReporter); ok && d.spec.LinkStates {
		_ = contain(s.log, "ReportLink", func() { l.ReportLink(s.supervise.link) }) // its panic is logged
	}
	if p, ok := conn.(Resumer); ok {
		_ = contain(s.log, "ReportResume", func() { p.ReportResume(s.supervise.keep) })
	}
}

// connected returns the connection that a call needs.
func (s *server) connected(call string) (*description, Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, closedFault(call)
	case s.conn == nil:
		return nil, nil, misuse(call, "connect comes before it")
	}
	return s.described, s.conn, nil
}

// closedFault is the answer to calls behind Close.
func closedFault(call string) *core.Fault {
	return newFault(core.FaultClosed, "%s: the endpoint is closed", call)
}

// drop closes a connection that is not taken.
func (s *server) drop(ctx context.Context, conn Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.AuthorLimit)
	defer cancel()
	if _, err := s.closeConn(ctx, conn, closeGrace, false); err != nil {
		s.log.Warn("close connection", "error", err)
	}
}
