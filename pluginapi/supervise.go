// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// maxSignals bounds what waits for the host to read it. Beyond it the oldest
// link states go: the newest one is what counts.
const maxSignals = 64

// maxResume bounds resume bytes: they are kept by the host, and sent at every
// change.
const maxResume = 1 << 20

// supervision holds what is to be told to the host beside its heartbeats. Only
// its own goroutines answer, so a transport that hangs still beats as long as
// the process runs.
type supervision struct {
	log  *slog.Logger
	wake chan struct{}

	mu     sync.Mutex
	open   bool
	due    bool   // a heartbeat is not answered
	beat   uint64 // the newest one; older ones are answered with it
	links  []*transportpb.LinkState
	last   *transportpb.LinkState // newest state, for a stream that opens later
	resume []byte                 // newest resume bytes
	told   bool                   // the host has them
}

func (v *supervision) init(log *slog.Logger) {
	v.wake, v.log = make(chan struct{}, 1), log
}

// signal wakes the writer.
func (v *supervision) signal() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// link keeps a link state for the host.
func (v *supervision) link(st LinkState) {
	m := &transportpb.LinkState{Up: st.Up, Reason: convert.Text(cut(st.Reason, maxReportPlace))}
	v.mu.Lock()
	v.last = m
	v.links = append(v.links, m)
	if len(v.links) > maxSignals {
		v.links = v.links[1:]
	}
	v.mu.Unlock()
	v.signal()
}

// keep keeps new resume bytes for the host.
func (v *supervision) keep(resume []byte) {
	if len(resume) > maxResume {
		v.log.Error("transport's resume bytes are over the limit; the last ones stay", "bytes", len(resume), "limit", maxResume)
		return
	}
	v.mu.Lock()
	v.resume = append([]byte(nil), resume...)
	v.told = false
	v.mu.Unlock()
	v.signal()
}

// resumed returns the resume bytes as of now, as told.
func (v *supervision) resumed() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = true
	return v.resume
}

// next returns what to send next, nil when there is nothing.
func (v *supervision) next() *transportpb.SuperviseResponse {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.due:
		v.due = false
		return &transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Beat{Beat: v.beat}}
	case len(v.links) > 0:
		m := v.links[0]
		v.links = v.links[1:]
		return &transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Link{Link: m}}
	case v.resume != nil && !v.told:
		v.told = true
		return &transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Resume{Resume: v.resume}}
	}
	return nil
}

// Supervise answers heartbeats, takes the log level, and reports link states
// and resume bytes, until the host half-closes.
func (s *server) Supervise(stream link.ServerSuperviseStream) error {
	v := &s.supervise
	v.mu.Lock()
	if v.open {
		v.mu.Unlock()
		return misuse("supervise", "it is open already")
	}
	v.open = true
	if len(v.links) == 0 && v.last != nil {
		v.links = append(v.links, v.last)
	}
	v.mu.Unlock()
	v.signal()

	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- v.write(stream, stop) }()
	err := s.hear(stream)
	close(stop)
	werr := <-done
	v.mu.Lock()
	v.open = false
	v.mu.Unlock()
	if errors.Is(err, io.EOF) {
		return werr
	}
	return err
}

// hear reads the host's signals until it half-closes (io.EOF) or is lost.
func (s *server) hear(stream link.ServerSuperviseStream) error {
	v := &s.supervise
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		switch p := r.GetPart().(type) {
		case *transportpb.SuperviseRequest_Beat:
			v.mu.Lock()
			v.due, v.beat = true, p.Beat
			v.mu.Unlock()
			v.signal()
		case *transportpb.SuperviseRequest_LogLevel:
			s.setLevel(p.LogLevel)
		}
	}
}

// write sends what there is until stop.
func (v *supervision) write(stream link.ServerSuperviseStream, stop <-chan struct{}) error {
	for {
		for m := v.next(); m != nil; m = v.next() {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		select {
		case <-v.wake:
		case <-stop:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

// setLevel sets the level of the author's logger.
func (s *server) setLevel(name string) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		s.log.Warn("log level is not known", "level", name)
		return
	}
	if s.options.Level != nil {
		s.options.Level.Set(level)
	}
}
