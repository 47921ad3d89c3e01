// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// fakeLink has supervision only.
type fakeLink struct {
	link.Link
	g *fake
}

func (l fakeLink) Supervise(ctx context.Context) (link.SuperviseStream, error) {
	if l.g.superviseErr != nil {
		return nil, l.g.superviseErr
	}
	return &fakeSupervise{ctx: ctx, g: l.g}, nil
}

type fakeSupervise struct {
	ctx context.Context //nolint:containedctx // a stream's
	g   *fake
}

func (s *fakeSupervise) Send(r *transportpb.SuperviseRequest) error {
	beat, ok := r.GetPart().(*transportpb.SuperviseRequest_Beat)
	if !ok {
		s.g.levels <- r.GetLogLevel()
		return nil
	}
	if s.g.deaf {
		return nil
	}
	s.g.say(&transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Beat{Beat: beat.Beat}})
	return nil
}

func (s *fakeSupervise) CloseSend() error { return nil }

func (s *fakeSupervise) Recv() (*transportpb.SuperviseResponse, error) {
	select {
	case r := <-s.g.says:
		return r, nil
	case <-s.g.broken:
		return nil, &link.LostError{Cause: io.ErrUnexpectedEOF}
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// fake is a generation without a process.
type fake struct {
	n            uint64
	policy       Options
	deaf         bool // answers no heartbeat
	never        bool
	superviseErr error
	says         chan *transportpb.SuperviseResponse
	levels       chan string
	broken       chan struct{} // the connection

	mu    sync.Mutex
	once  sync.Once
	done  chan struct{}
	exit  Exit
	ended int
}

func newFake(n uint64) *fake {
	return &fake{
		n: n, policy: Options{}.withDefaults(),
		says: make(chan *transportpb.SuperviseResponse, 16), levels: make(chan string, 1),
		broken: make(chan struct{}), done: make(chan struct{}),
	}
}

func (f *fake) say(r *transportpb.SuperviseResponse) { f.says <- r }

// die ends it.
func (f *fake) die(e Exit) {
	f.once.Do(func() {
		f.mu.Lock()
		f.exit = e
		f.mu.Unlock()
		close(f.done)
	})
}

func (f *fake) Link() link.Link { return fakeLink{g: f} }

func (f *fake) Description() *transportpb.DescribeResponse {
	d := &transportpb.DescribeResponse{}
	if f.never {
		d.Restart = transportpb.RestartMode_RESTART_MODE_NEVER
	}
	return d
}

func (f *fake) Generation() uint64    { return f.n }
func (f *fake) PID() int              { return 1000 + int(f.n) }
func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) Stderr() []string      { return []string{"last words"} }
func (f *fake) Kill()                 { f.die(Exit{Code: -1, Signal: syscall.SIGKILL}) }
func (f *fake) Hang()                 { f.die(Exit{Code: -1, Signal: syscall.SIGKILL, Hung: true}) }

func (f *fake) Exit() Exit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exit
}

func (f *fake) End(context.Context) error {
	f.mu.Lock()
	f.ended++
	f.mu.Unlock()
	f.die(Exit{})
	return nil
}

func (f *fake) Heartbeats() (every time.Duration, missed int, level string) {
	return f.policy.Heartbeat, f.policy.Missed, "debug"
}
