// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// guidePeers are the Python programs of the guide, by the name that is in their
// first line.
func guidePeers(t *testing.T) map[string]string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/zmq.md")
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```python\n# (\\w+\\.py): [^\n]*\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		peers[m[1]] = m[2]
	}
	return peers
}

// The texts of the guide's last table are those that people see.
func TestGuideKnowsTheTexts(t *testing.T) {
	ofTheSystem := []string{"connection refused", "no such file or directory", "address already in use"}
	servicetest.GuideTexts(t, "../../docs/zmq.md", ofTheSystem, ".", "../../core")
}

// guidePort is an address of a program of the guide.
var guidePort = regexp.MustCompile(`tcp://127\.0\.0\.1:555\d`)

// guidePeer runs a program of the guide as it stands, but for its address.
func guidePeer(t *testing.T, name, address string) *zmqtest.Peer {
	t.Helper()
	t.Setenv("PYTHONUNBUFFERED", "1")
	source := guidePeers(t)[name]
	if n := len(guidePort.FindAllString(source, -1)); n != 1 {
		t.Fatalf("%s has %d addresses:\n%s", name, n, source)
	}
	return zmqtest.Python(t, guidePort.ReplaceAllLiteralString(source, address))
}

// guideSocket is an address for a program that binds.
func guideSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ls-guide-") // a test's own folder can be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return "ipc://" + filepath.Join(dir, "s")
}

// guideEndpoint attaches the plugin to a service.
func guideEndpoint(t *testing.T, s *servicetest.Service, set settings.Settings) *host.Endpoint {
	t.Helper()
	set.PeerWait = longestWait
	return s.Endpoint("in", host.Plugin{Name: "zmq", Path: pluginPath(t)}, set)
}

// guideQueue attaches a queue of the service's own, for what is tried again.
func guideQueue(t *testing.T, s *servicetest.Service) *host.Endpoint {
	t.Helper()
	return s.Endpoint("again", host.Plugin{Name: "zmq", Path: pluginPath(t)}, settings.Settings{Pattern: settings.PatternQueue, Bind: anyPort})
}

// The programs are all tried below.
func TestGuideHasNoOtherPeers(t *testing.T) {
	var names []string
	for name := range guidePeers(t) {
		names = append(names, name)
	}
	slices.Sort(names)
	servicetest.Expect(t, "programs", names, "answer.py", "ask.py", "ask_many.py", "listen.py", "publish.py", "send.py", "work.py")
}

func TestGuideSend(t *testing.T) {
	s := servicetest.New(t)
	jobs := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternQueue, Bind: anyPort})
	got := make(chan core.Headers, 1)
	s.Handle(jobs.Subscription("jobs"), func(m *host.Message[[]byte]) error {
		got <- m.Clone().Headers()
		return nil
	}, host.MaxAttempts(2))
	s.Start()
	guidePeer(t, "send.py", jobs.Addresses()[0])
	servicetest.Expect(t, "runs", s.Handled(1), `jobs 1 {"id": 7}`)
	servicetest.Expect(t, "headers", []string{(<-got).String()}, `[content-type="application/json" x-tenant="acme"]`)
	s.Stop()
}

func TestGuideWork(t *testing.T) {
	s := servicetest.New(t)
	jobs := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternQueue, Bind: anyPort})
	to := host.To[core.Message](s.Host, jobs.To("jobs"))
	s.Start()
	p := guidePeer(t, "work.py", jobs.Addresses()[0])
	for _, payload := range []string{"one", "two"} {
		s.Eventually("somebody takes it", func() bool {
			_, err := to.Publish(t.Context(), core.Message{Payload: []byte(payload), Headers: servicetest.Headers("X-Tenant", "acme")})
			return err == nil
		})
	}
	p.Expect("jobs {'X-Tenant': 'acme'} one", "jobs {'X-Tenant': 'acme'} two")
	s.Stop()
}

func TestGuideListen(t *testing.T) {
	s := servicetest.New(t)
	press := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternFanOut, Bind: anyPort})
	news, prices := host.To[[]byte](s.Host, press.To("sport.chess")), host.To[[]byte](s.Host, press.To("prices.gold"))
	s.Start()
	p := guidePeer(t, "listen.py", press.Addresses()[0])
	s.Eventually("somebody reads", func() bool {
		r, err := news.Publish(t.Context(), []byte("a draw"))
		return err == nil && !r.Unrouted
	})
	if r, err := prices.Publish(t.Context(), []byte("4100")); err != nil || !r.Unrouted {
		t.Errorf("prices: %+v, %v; want that nobody reads them", r, err)
	}
	p.Expect("sport.chess a draw")
	p.Silent("prices")
	s.Stop()
}

func TestGuidePublish(t *testing.T) {
	address := guideSocket(t)
	s := servicetest.New(t)
	press := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternFanOut, Connect: []string{address}})
	elsewhere := guideQueue(t, s)
	s.Handle(press.Subscription("sport."), servicetest.Always(nil), host.MaxAttempts(2), host.RetryTo(elsewhere.To("again")))
	s.Handle(elsewhere.Subscription("again"), servicetest.Always(nil), host.MaxAttempts(2))
	p := guidePeer(t, "publish.py", address)
	s.Start()
	servicetest.Expect(t, "runs", s.Ran(2), "sport.chess 1 a draw", "sport.chess 1 a draw")
	p.Kill()
	s.Cancel() // more may have come
	s.Ended()
}

// A proxy of libzmq stands between a publisher and a subscriber that dial it.
func TestGuideProxy(t *testing.T) {
	in, out := guideSocket(t), guideSocket(t)
	p := zmqtest.Python(t, `
x = ctx.socket(zmq.XSUB)
x.bind(arg[0])
y = ctx.socket(zmq.XPUB)
y.bind(arg[1])
say("there")
zmq.proxy(x, y)
`, in, out)
	p.Expect("there")
	reader := servicetest.New(t)
	news := guideEndpoint(t, reader, settings.Settings{Pattern: settings.PatternFanOut, Connect: []string{out}})
	again := guideQueue(t, reader)
	reader.Handle(news.Subscription("sport."), servicetest.Always(nil), host.MaxAttempts(2), host.RetryTo(again.To("again")))
	reader.Handle(again.Subscription("again"), servicetest.Always(nil), host.MaxAttempts(2))
	reader.Start()
	writer := servicetest.New(t)
	press := guideEndpoint(t, writer, settings.Settings{Pattern: settings.PatternFanOut, Connect: []string{in}})
	to, other := host.To[[]byte](writer.Host, press.To("sport.chess")), host.To[[]byte](writer.Host, press.To("prices.gold"))
	writer.Start()
	if r, err := other.Publish(t.Context(), []byte("4100")); err != nil || !r.Unrouted {
		t.Errorf("prices: %+v, %v; want that nobody reads them", r, err)
	}
	if r, err := to.Publish(t.Context(), []byte("a draw")); err != nil || r.Unrouted {
		t.Errorf("sport: %+v, %v", r, err)
	}
	servicetest.Expect(t, "runs", reader.Handled(1), "sport.chess 1 a draw")
	writer.Stop()
	reader.Stop()
	p.Kill()
}

// guideBank is a service that answers.
func guideBank(t *testing.T) (s *servicetest.Service, address string) {
	t.Helper()
	type question struct{ From, To string }
	type answer struct{ Rate float64 }
	s = servicetest.New(t)
	bank := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternRPC, Bind: anyPort})
	failed := guideQueue(t, s)
	host.HandleReply(bank.Subscription("rates"), func(_ context.Context, m *host.Message[question]) (answer, error) {
		return answer{map[question]float64{{"EUR", "USD"}: 1.25, {"EUR", "SEK"}: 11}[m.Value]}, nil
	}, host.MaxAttempts(2), host.RetryTo(failed.To("rates")))
	s.Handle(failed.Subscription("rates"), servicetest.Always(nil), host.MaxAttempts(2))
	s.Start()
	return s, bank.Addresses()[0]
}

func TestGuideAsk(t *testing.T) {
	s, address := guideBank(t)
	guidePeer(t, "ask.py", address).Expect(`{"Rate":1.25}`)
	s.Stop()
}

func TestGuideAskMany(t *testing.T) {
	s, address := guideBank(t)
	p := guidePeer(t, "ask_many.py", address)
	got := []string{p.Line(), p.Line()}
	slices.Sort(got)
	servicetest.Expect(t, "answers", got, `SEK {"Rate":11}`, `USD {"Rate":1.25}`)
	s.Stop()
}

func TestGuideAnswer(t *testing.T) {
	address := guideSocket(t)
	p := guidePeer(t, "answer.py", address)
	s := servicetest.New(t)
	desk := guideEndpoint(t, s, settings.Settings{Pattern: settings.PatternRPC, Connect: []string{address}})
	s.Start()
	for range 3 {
		got, err := host.Request[[]byte, []byte](t.Context(), s.Host, desk.To("rates"), []byte("?"), host.WithTimeout(servicetest.Limit/3))
		if err != nil || strings.TrimSpace(string(got)) != `{"Rate": 1.25}` {
			t.Errorf("got %s, %v", got, err)
		}
	}
	p.Kill()
	s.Stop()
}
