// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// guideScripts are the commands of the guide, by the name that is in their first
// line.
func guideScripts(t *testing.T) map[string]string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/mqtt.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```sh\n# (\\w+\\.sh): [^\n]*\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		scripts[m[1]] = m[2]
	}
	return scripts
}

// The texts of the guide's last table are those that people see.
func TestGuideKnowsTheTexts(t *testing.T) {
	ofTheSystem := []string{"certificate signed by unknown authority"}
	codes := []string{"bad user name or password (0x86)", "not authorized (0x87)"} // packet.Word's
	servicetest.GuideTexts(t, "../../docs/mqtt.md", append(ofTheSystem, codes...), ".", "../internal/fault", "../../core", "../../host")
}

// The scripts are all tried below.
func TestGuideHasNoOtherScripts(t *testing.T) {
	names := slices.Sorted(maps.Keys(guideScripts(t)))
	servicetest.Expect(t, "scripts", names, "answer.sh", "ask.sh", "order.sh", "share.sh", "watch.sh")
}

// script is a running script of the guide.
type script struct {
	t     *testing.T
	lines chan string
}

// guideScript runs a script as it stands: where the broker is Mosquitto's clients
// read in their own configuration files.
func guideScript(t *testing.T, b *mosquitto.Broker, name string) *script {
	t.Helper()
	dir := t.TempDir()
	for _, client := range []string{"mosquitto_pub", "mosquitto_sub", "mosquitto_rr"} {
		if err := os.WriteFile(filepath.Join(dir, client), []byte("-p "+strconv.Itoa(b.Port())+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), servicetest.Limit)
	cmd := exec.CommandContext(ctx, "sh", "-c", guideScripts(t)[name])
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a pipe has several processes
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &script{t, make(chan string, 100)}
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.lines <- lines.Text()
		}
		_ = cmd.Wait() // it is killed, unless it has ended
	}()
	t.Cleanup(func() {
		cancel()
		for range s.lines {
		}
	})
	return s
}

// line is the next one that the script prints, "" at its end.
func (s *script) line() string {
	s.t.Helper()
	select {
	case line := <-s.lines:
		return line
	case <-time.After(servicetest.Limit):
		s.t.Fatal("the script prints nothing")
		return ""
	}
}

// guideEndpoint attaches the plugin to a service.
func guideEndpoint(t *testing.T, s *servicetest.Service, b *mosquitto.Broker, client string) *host.Endpoint {
	t.Helper()
	path := programtest.Path(t, "github.com/longshore-go/longshore/plugins/mqtt/longshore-transport-mqtt")
	return s.Endpoint(client, host.Plugin{Name: "mqtt", Path: path}, settings.Settings{URL: settings.URL(b.URL()), ClientID: client})
}

func TestGuideFirstSteps(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	s := servicetest.New(t)
	broker := guideEndpoint(t, s, b, "shipping")
	s.Handle(broker.Subscription("orders"), func(m *host.Message[[]byte]) error {
		if !strings.Contains(string(m.Value), "address") {
			return errors.New("no address")
		}
		return nil
	}, host.Forward(broker.To("addresses")), host.MaxAttempts(3), host.DeadLetterTo(broker.To("dead/orders")))
	s.Start()
	watch := guideScript(t, b, "watch.sh")
	b.Await(2, "Sending SUBACK")
	order := guideScript(t, b, "order.sh")
	if line := order.line(); line != "" {
		t.Errorf("order.sh prints %q", line)
	}
	servicetest.Expect(t, "runs", s.Handled(4), `orders 1 {"address": "Pier 4"}`, `orders 1 {"id": 7}`, `orders 2 {"id": 7}`, `orders 3 {"id": 7}`)
	if line, want := watch.line(), `addresses {"address": "Pier 4"} [x-tenant:acme]`; line != want {
		t.Errorf("watch.sh prints %q, want %q", line, want)
	}
	if line := watch.line(); !strings.HasPrefix(line, `dead/orders {"id": 7} [x-ruststream-retry-count:3`) || !strings.Contains(line, "no address") {
		t.Errorf("watch.sh prints %q", line)
	}
	s.Stop()
}

type (
	guideQuestion struct{ Ship string }
	guideAnswer   struct{ Berth string }
)

func TestGuideAsk(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	s := servicetest.New(t)
	office := guideEndpoint(t, s, b, "office")
	host.HandleReply(office.Subscription("harbour/berths"), func(_ context.Context, m *host.Message[guideQuestion]) (guideAnswer, error) {
		return guideAnswer{"a berth for " + m.Value.Ship}, nil
	}, host.MaxAttempts(2))
	s.Start()
	if got, want := guideScript(t, b, "ask.sh").line(), `{"Berth":"a berth for Thalia"}`; got != want {
		t.Errorf("ask.sh prints %q, want %q", got, want)
	}
	s.Stop()
}

func TestGuideAnswer(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	guideScript(t, b, "answer.sh")
	b.Await(1, "Sending SUBACK")
	s := servicetest.New(t)
	ships := guideEndpoint(t, s, b, "ships")
	s.Start()
	for range 3 {
		got, err := host.Request[guideQuestion, guideAnswer](t.Context(), s.Host, ships.To("harbour/berths"), guideQuestion{"Thalia"}, host.WithTimeout(servicetest.Limit))
		if err != nil || got.Berth != "pier 4" {
			t.Errorf("got %v, %v", got, err)
		}
	}
	s.Stop()
}

// Two members of a group share what is published.
func TestGuideShare(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	s := servicetest.New(t)
	workers := guideEndpoint(t, s, b, "worker")
	s.Handle(workers.Subscription("orders", host.Options(settings.SubscribeOptions{Group: "workers"})), servicetest.Always(nil), host.MaxAttempts(2))
	s.Start()
	share := guideScript(t, b, "share.sh")
	b.Await(2, "Sending SUBACK")
	b.PublishAll(mosquitto.Message{Topic: "orders", QoS: 1}, "1", "2", "3", "4")
	got := []string{share.line(), share.line()}
	for _, run := range s.Handled(2) {
		got = append(got, strings.TrimPrefix(run, "orders 1 "))
	}
	slices.Sort(got)
	servicetest.Expect(t, "orders", got, "1", "2", "3", "4")
	s.Stop()
}
