// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	goleak.VerifyTestMain(m)
}

// limit is the longest that anything in a test may take.
const limit = time.Minute

// server is a redis-server of a test's own, on a Unix socket.
type server struct {
	t      *testing.T
	dir    string
	args   []string
	cmd    *exec.Cmd
	client *redis.Client // what others do
}

// startServer starts a server; args are added to its configuration.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), args: args}
	t.Cleanup(s.kill)
	s.start()
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket()})
	t.Cleanup(func() { s.client.Close() })
	return s
}

func (s *server) socket() string  { return filepath.Join(s.dir, "redis") }
func (s *server) address() string { return "unix:" + s.socket() }

// start returns when the server answers.
func (s *server) start() {
	s.t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("redis-server is missing: apt-get install redis-server")
	}
	args := append([]string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", ""}, s.args...)
	s.cmd = exec.Command(path, args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	probe := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket()})
	defer probe.Close()
	s.until("the server answers", func() bool {
		err := probe.Ping(s.t.Context()).Err()
		return err == nil || code(err) == "NOAUTH"
	})
}

// kill ends the server as a crash would.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}

// disconnect cuts the connections of all others.
func (s *server) disconnect(ctx context.Context, _ plugintest.Place) error {
	return s.client.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
}

// restart kills the server and starts it on what it has written.
func (s *server) restart(context.Context, plugintest.Place) error {
	s.kill()
	s.start()
	return nil
}

// until waits until what is so.
func (s *server) until(what string, so func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-end.C:
			s.t.Fatalf("timed out until %s", what)
		}
	}
}

// configure returns the endpoint with settings as JSON beside the address.
func (s *server) configure(more string) pluginapi.Endpoint {
	s.t.Helper()
	raw := `{"address": "` + s.address() + `"` + more + `}`
	e, err := transport{}.Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(raw))})
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// connect returns a connection that is closed with the test.
func (s *server) connect(more string) *conn {
	s.t.Helper()
	c, err := s.configure(more).Connect(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		c.Close(ctx)
	})
	return c.(*conn)
}

// reader is a subscription as the SDK calls it.
type reader struct {
	*subscription
	t    *testing.T
	held []pluginapi.Delivery // received and not taken yet
	void []pluginapi.Void
	said []pluginapi.Report
}

func (s *server) subscribe(c *conn, stream, opts string) *reader {
	s.t.Helper()
	sub, err := c.Subscribe(s.t.Context(), pluginapi.Registration{Name: stream, Options: pluginapi.NewOptions([]byte(opts))})
	if err != nil {
		s.t.Fatal(err)
	}
	return &reader{subscription: sub.(*subscription), t: s.t}
}

// receive calls Receive once, for at most d, and keeps what comes.
func (r *reader) receive(d time.Duration, room pluginapi.Room) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	b, err := r.Receive(ctx, room)
	r.held = append(r.held, b.Deliveries...)
	r.void = append(r.void, b.Voids...)
	r.said = append(r.said, b.Reports...)
	return err
}

var wide = pluginapi.Room{Messages: 1024, Bytes: 8 << 20}

// next returns the next delivery.
func (r *reader) next() pluginapi.Delivery {
	r.t.Helper()
	for end := time.Now().Add(limit); len(r.held) == 0; {
		if time.Now().After(end) {
			r.t.Fatal("nothing was delivered")
		}
		if err := r.receive(limit, wide); err != nil {
			r.t.Fatal(err)
		}
	}
	d := r.held[0]
	r.held = r.held[1:]
	return d
}

// none fails when anything is delivered within d.
func (r *reader) none(d time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(d); len(r.held) == 0 && time.Now().Before(end); {
		r.receive(time.Until(end), wide)
	}
	for _, d := range r.held {
		r.t.Errorf("%q was delivered, attempt %d", d.Message.Payload, d.Attempt)
	}
}

// settle carries out one verdict and compares its result.
func (r *reader) settle(d pluginapi.Delivery, v pluginapi.Verdict, want pluginapi.ResultStatus) {
	r.t.Helper()
	v.Handle = d.Handle
	got := r.Settle(r.t.Context(), []pluginapi.Verdict{v})
	if len(got) != 1 || got[0].Status != want {
		r.t.Errorf("verdict %v: %+v, want status %d", v.Kind, got, want)
	}
}

func (r *reader) ack(d pluginapi.Delivery, want pluginapi.ResultStatus) {
	r.t.Helper()
	r.settle(d, pluginapi.Verdict{Kind: core.VerdictAck}, want)
}

// publish publishes messages and returns their receipts.
func publish(c *conn, msgs ...core.Message) []pluginapi.Receipt {
	out := make([]pluginapi.Outgoing, len(msgs))
	for i := range msgs {
		out[i].Message = msgs[i]
	}
	receipts := make([]pluginapi.Receipt, len(msgs))
	c.Publish(context.Background(), out, func(i int, r pluginapi.Receipt) { receipts[i] = r })
	return receipts
}

func text(stream, payload string) core.Message {
	return core.Message{Name: stream, Payload: []byte(payload)}
}
