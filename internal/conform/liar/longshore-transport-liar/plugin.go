// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// state is how far the conversation has come.
type state int

const (
	isNew state = iota
	isConfigured
	isConnected
	isClosed
)

// missing says which call a state lacks.
var missing = map[state]string{isConfigured: "Configure", isConnected: "Connect"}

// plugin is one process: one endpoint.
type plugin struct {
	conduct atomic.Pointer[liar.Conduct]
	store   *store
	link    *link
	waiting atomic.Int32 // subscriptions that wait for messages

	mu         sync.Mutex
	described  int // calls
	state      state
	connecting bool
	settings   settings
	subs       map[uint32]*subscription // by registration
	publishing *publisher
	supervised bool
	kept       [][]byte // what the leaking lie keeps
	spent      sync.Map // ids of registrations that a lie does not open again
	former     sync.Map // queue's name -> map[uint64]*entry, of a cancelled stream
}

func newPlugin() *plugin {
	return &plugin{store: newStore(), link: newLink(), subs: map[uint32]*subscription{}}
}

// require refuses a call that comes before another one or behind Close.
func (p *plugin) require(call string, least state) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check(call, least)
}

// check is require with the lock held.
func (p *plugin) check(call string, least state) error {
	switch {
	case p.state == isClosed:
		return refuse(fault(closed, "%s: the endpoint is closed", call))
	case p.state < least:
		return refuse(fault(conflict, "%s: %s has to be called before", call, missing[p.state+1]))
	}
	return nil
}

func (p *plugin) configure(_ context.Context, r *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check("configure", isNew); err != nil {
		return nil, err
	}
	conduct := p.conduct.Load()
	if p.described == 0 {
		return nil, refuse(fault(conflict, "configure: Describe has to be called before"))
	}
	if p.state != isNew && !conduct.Repeatable {
		return nil, refuse(fault(conflict, "configure: the endpoint has settings already"))
	}
	s, wrong := readSettings(r.GetSettings())
	if c, ok := liar.Find(s.lie); ok && s.lie != "" {
		conduct = c
	}
	if conduct.TakesUnknown && s.dir != "" {
		wrong = nil
	}
	if len(wrong) > 0 {
		if conduct.Diagnostics != nil {
			wrong = conduct.Diagnostics(wrong)
		}
		for _, d := range wrong {
			logf(levelWarn, "configure: %s %s; %s", d.GetPath(), d.GetMessage(), d.GetFix())
		}
		f := fault(invalid, "the settings of %s are wrong", r.GetEndpoint())
		f.Diagnostics = wrong
		return &pb.ConfigureResponse{Fault: f}, nil
	}
	p.conduct.Store(conduct)
	p.settings, p.state = s, max(p.state, isConfigured)
	if conduct.LogsSecrets {
		logf(levelInfo, "configured with %s", r.GetSettings())
	}
	if conduct.ConfigureIO {
		openEarly(s.dir)
	}
	return &pb.ConfigureResponse{}, nil
}

// openEarly is the I/O that Configure must not do; both stay open.
func openEarly(dir string) {
	_ = os.MkdirAll(dir, 0o700)
	if f, err := os.Create(filepath.Join(dir, "early")); err == nil {
		early = append(early, f)
	}
	if l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"); err == nil {
		early = append(early, l)
	}
}

// early keeps what openEarly has opened from being collected.
var early []any

func (p *plugin) connect(ctx context.Context, _ *pb.ConnectRequest) (*pb.ConnectResponse, error) {
	p.mu.Lock()
	err := p.check("connect", isConfigured)
	conduct := p.conduct.Load()
	if err == nil && (p.connecting || p.state == isConnected && !conduct.Repeatable) {
		err = refuse(fault(conflict, "connect: the endpoint is connected already"))
	}
	if err != nil || p.state == isConnected {
		p.mu.Unlock()
		return &pb.ConnectResponse{}, err
	}
	p.connecting = true
	s := p.settings
	p.mu.Unlock()

	f := p.store.open(ctx, s.dir, &conduct.Keeping)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.connecting = false
	if f != nil {
		return nil, refuse(f)
	}
	if p.state == isClosed || ctx.Err() != nil {
		p.store.close()
		return nil, refuse(fault(canceled, "connect: the call was cut short"))
	}
	p.state = isConnected
	if conduct.LeavesChild {
		leaveChild()
	}
	if s.cut != "" {
		go p.watchCut(s.cut)
	}
	p.link.set(&pb.LinkState{Up: true})
	logf(levelInfo, "connected to %s", s.dir)
	return &pb.ConnectResponse{}, nil
}

func (p *plugin) request(context.Context, *pb.RequestRequest) (*pb.RequestResponse, error) {
	if p.conduct.Load().AnswersAll {
		return &pb.RequestResponse{Reply: &pb.Message{Name: "reply"}}, nil
	}
	if err := p.require("request", isConnected); err != nil {
		return nil, err
	}
	return nil, refuse(fault(unsupported, "request: a queue has no replies"))
}

// defaultClose is the limit of a Close that names none.
const defaultClose = 5 * time.Second

func (p *plugin) close(_ context.Context, r *pb.CloseRequest) (*pb.CloseResponse, error) {
	limit := time.Duration(r.GetLimit())
	if limit <= 0 {
		limit = defaultClose
	}
	// The answer has to be there at the limit.
	end := time.Now().Add(limit - min(limit/4, 200*time.Millisecond))

	p.mu.Lock()
	if p.state == isClosed {
		p.mu.Unlock()
		return nil, refuse(fault(closed, "close: the endpoint is closed"))
	}
	p.state = isClosed
	subs := make([]*subscription, 0, len(p.subs))
	for _, s := range p.subs {
		subs = append(subs, s)
	}
	pub := p.publishing
	p.mu.Unlock()

	for _, s := range subs {
		s.stop()
	}
	for _, s := range subs {
		s.shut(end)
	}
	if pub != nil {
		pub.close(end)
	}
	p.store.close()
	if p.conduct.Load().ExitsOnClose {
		time.AfterFunc(100*time.Millisecond, func() { os.Exit(0) })
	}
	return &pb.CloseResponse{}, nil
}
