// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// watcher is the host's side of supervision.
type watcher struct {
	tb testing.TB
	s  link.SuperviseStream
	in chan *transportpb.SuperviseResponse
}

func (b *bench) supervise() *watcher {
	b.tb.Helper()
	s, err := b.link.Supervise(b.ctx)
	if err != nil {
		b.tb.Fatalf("Supervise: %v", err)
	}
	w := &watcher{tb: b.tb, s: s, in: make(chan *transportpb.SuperviseResponse, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(w.in)
		for {
			r, err := s.Recv()
			if err != nil {
				return
			}
			w.in <- r
		}
	}()
	b.tb.Cleanup(func() { b.link.Break(nil); <-done })
	return w
}

func (w *watcher) next() string {
	w.tb.Helper()
	select {
	case r, ok := <-w.in:
		switch p := r.GetPart().(type) {
		case *transportpb.SuperviseResponse_Beat:
			return fmt.Sprint("beat ", p.Beat)
		case *transportpb.SuperviseResponse_Link:
			return fmt.Sprintf("link %v %s", p.Link.GetUp(), p.Link.GetReason())
		case *transportpb.SuperviseResponse_Resume:
			return "resume " + string(p.Resume)
		}
		return fmt.Sprint("end ", !ok)
	case <-time.After(soon):
		w.tb.Fatal("nothing comes")
		return ""
	}
}

func (w *watcher) beat(n uint64) {
	w.tb.Helper()
	if err := w.s.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_Beat{Beat: n}}); err != nil {
		w.tb.Fatalf("send: %v", err)
	}
}

// A transport that hangs in every call still beats: only a hung process does not.
func TestHeartbeatsDoNotDependOnTheTransport(t *testing.T) {
	tr := newQueueTransport(everything())
	free := make(chan struct{})
	tr.connect = func([]byte) error { <-free; return nil }
	b := serve(t, tr)
	if _, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		_, _ = b.link.Connect(b.ctx, &transportpb.ConnectRequest{})
	}()
	w := b.supervise()
	for n := range uint64(5) {
		w.beat(n)
		if got := w.next(); got != fmt.Sprint("beat ", n) {
			t.Errorf("answer to beat %d: %s", n, got)
		}
	}
	close(free)
	<-connected
}

func TestLinkStatesAndResumeBytes(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.LinkStates = true
	b := serve(t, tr).connect() // its resume bytes are in the answer to Connect
	tr.report(LinkState{Up: false, Reason: "first\xff"})
	tr.report(LinkState{Up: true})
	w := b.supervise()
	var got []string
	for range 2 {
		got = append(got, w.next())
	}
	tr.keep([]byte("r2"))
	got = append(got, w.next())
	tr.report(LinkState{Reason: "gone"})
	got = append(got, w.next())
	if d := cmp.Diff([]string{"link false first\uFFFD", "link true ", "resume r2", "link false gone"}, got); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
	second := b.supervise()
	if got := second.next(); got != "end true" {
		t.Errorf("second stream: %s", got)
	}
	if err := w.s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if got := w.next(); got != "end true" {
		t.Errorf("after the half-close: %s", got)
	}
	third := b.supervise() // it hears how things stand
	if got := third.next(); got != "link false gone" {
		t.Errorf("third stream: %s", got)
	}
}

func TestLogLevelFollowsTheHost(t *testing.T) {
	b := serve(t, newQueueTransport(everything()))
	w := b.supervise()
	for _, tc := range []struct {
		name string
		want slog.Level
	}{{"debug", slog.LevelDebug}, {"error", slog.LevelError}, {"nonsense", slog.LevelError}, {"info", slog.LevelInfo}} {
		if err := w.s.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_LogLevel{LogLevel: tc.name}}); err != nil {
			t.Fatal(err)
		}
		w.beat(1)
		w.next()
		if got := b.level.Level(); got != tc.want {
			t.Errorf("level %s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestRecordsAreHclogLines(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := newLogger(&out, level)
	log.Debug("not yet")
	level.Set(slog.LevelDebug)
	log.With("endpoint", "e").WithGroup("g").Debug("hello\nthere",
		"secret", core.NewSecret("s3cret"), "n", 1, "err", errors.New("broken"), slog.Group("h", "d", time.Second))
	log.Warn("w", "@message", "mine", "@level", "mine")
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), out.Bytes())
	}
	var got []map[string]any
	for _, line := range lines {
		m := map[string]any{}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(hclogTimeLayout, m[hclogTime].(string)); err != nil {
			t.Error(err)
		}
		delete(m, hclogTime)
		got = append(got, m)
	}
	want := []map[string]any{
		{"@level": "debug", "@message": "hello\nthere", "endpoint": "e", "g": map[string]any{
			"secret": "[redacted]", "n": 1.0, "err": "broken", "h": map[string]any{"d": "1s"},
		}},
		{"@level": "warn", "@message": "w", "message": "mine", "level": "mine"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	for level, want := range map[slog.Level]string{-8: "trace", -4: "debug", 0: "info", 2: "info", 4: "warn", 9: "error"} {
		if got := hclogLevelName(level); got != want {
			t.Errorf("level %d is %s, want %s", level, got, want)
		}
	}
	if log.Enabled(context.Background(), -8) {
		t.Error("trace is on")
	}
}
