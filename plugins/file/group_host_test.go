// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/position"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A service with a group retries at the source, whose file stays as it is, ends
// by itself when all is settled, and has nothing to do when it starts again.
func TestGroupOfAService(t *testing.T) {
	path := newPath(t)
	refill(t, path, 4)
	before := contents(t, path)
	o := settings.Subscription{Group: "billing", Replay: true}
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), func(m *host.Message[[]byte]) error {
		switch {
		case string(m.Value) == "2" && m.Attempt() == 1:
			return host.Retry(nil)
		case string(m.Value) == "3" && m.Attempt() < 3:
			return host.RetryAfter(20*time.Millisecond, nil)
		}
		return nil
	}, host.MaxAttempts(5))
	s.Launch()
	servicetest.Expect(t, "runs", sorted(s.Handled(7)), "orders 1 1", "orders 1 2", "orders 1 3", "orders 1 4", "orders 2 2", "orders 2 3", "orders 3 3")
	servicetest.Expect(t, "file", s.ended(), before...)
	s.Log.Silent(t)

	s = newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), servicetest.Always(nil))
	s.Launch()
	servicetest.Expect(t, "file", s.ended(), before...)
}

// A service with a group and a policy reads what another process writes: its
// retries need no lock.
func TestGroupBesideAWriter(t *testing.T) {
	path := newPath(t)
	refill(t, path, 2)
	writer := open(t, settings.Settings{Path: path}, writes("orders"))
	defer writer.end()
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", settings.Subscription{Group: "billing", Replay: true}), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2))
	s.Launch()
	servicetest.Expect(t, "runs", sorted(s.Handled(4)), "orders 1 1", "orders 1 2", "orders 2 1", "orders 2 2")
	s.ended()
}

// At its cap a message goes to the dead letter, in the same file, once.
func TestGroupAtItsCap(t *testing.T) {
	path := newPath(t)
	refill(t, path, 2)
	o := settings.Subscription{Group: "billing", Replay: true}
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), servicetest.Always(host.Retry(nil)), host.MaxAttempts(3), host.DeadLetterTo(s.in.To("dead")))
	s.Launch()
	servicetest.Expect(t, "runs", sorted(s.Handled(6)), "orders 1 1", "orders 1 2", "orders 2 1", "orders 2 2", "orders 3 1", "orders 3 2")
	file := s.ended()
	if n := strings.Count(strings.Join(file, "\n"), "dead "); n != 2 || len(file) != 4 {
		t.Errorf("the file holds %q", file)
	}
}

// A plugin that is killed while a handler runs hands out again what was not
// settled, counted, and nothing else.
func TestGroupWhosePluginIsKilled(t *testing.T) {
	const records = 30
	path := newPath(t)
	refill(t, path, records)
	o := settings.Subscription{Group: "billing", Replay: true}
	hold, release := make(chan struct{}), make(chan struct{})
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), func(m *host.Message[[]byte]) error {
		if string(m.Value) == "10" && m.Attempt() == 1 {
			close(hold)
			<-release
		}
		return nil
	})
	s.Launch()
	<-hold // in order: the acks of those before are on their way
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for saved(t, path).Unsettled() > records-9 {
		<-look.C
	}
	first := holder(t, path)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for holder(t, path) == first {
		<-look.C
	}
	close(release)
	if err := s.Wait(); err != nil {
		t.Errorf("the host ended with %v\n%s", err, s.Log)
	}
	runs := map[string]string{}
	for _, r := range s.Runs() {
		f := strings.Fields(r)
		runs[f[2]] += f[1]
	}
	for i := range records {
		p := strconv.Itoa(i + 1)
		if got := runs[p]; i < 9 && got != "1" || i == 9 && got != "12" || i > 9 && got != "2" && got != "1" {
			t.Errorf("%s ran as attempts %s", p, got)
		}
	}

	s = newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), servicetest.Always(nil))
	s.Launch()
	s.ended()
}

// The second service of a group does not start, and says who has the position.
func TestGroupOfTwoServices(t *testing.T) {
	path := newPath(t)
	refill(t, path, 1)
	b := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	held := b.subscribe("orders", billing)
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", billing), servicetest.Always(nil))
	s.Launch()
	err := s.Wait()
	if err == nil {
		t.Fatalf("it started\n%s", s.Log)
	}
	for _, text := range []string{"orders", "billing", strconv.Itoa(os.Getpid()), path} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not name %s", err, text)
		}
	}
	b.wants(held, "1 1")
	b.closeSub(held)
}

// saved is a copy of the group's position.
func saved(t *testing.T, path string) *position.Tracker {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path+".groups", "billing", "orders.pos"))
	if err != nil {
		t.Fatal(err)
	}
	groups := t.TempDir()
	if err := os.MkdirAll(filepath.Join(groups, "billing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(groups, "billing", "orders.pos"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := position.Open(groups, "billing", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A record that carries as many attempts as the cap, as a dead letter does, is
// handled once.
func TestGroupOfCountedRecords(t *testing.T) {
	path := newPath(t)
	w := open(t, settings.Settings{Path: path}, writes("orders"))
	w.publish(servicetest.Message("orders", "1"), servicetest.Message("orders", "2", core.CountHeader, "3"))
	o := settings.Subscription{Group: "billing", Replay: true}
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("orders", o), func(m *host.Message[[]byte]) error {
		if m.Attempt() < 2 {
			return host.Retry(nil)
		}
		return nil
	}, host.MaxAttempts(3), host.Backoff(host.Constant(time.Millisecond)))
	s.Launch()
	servicetest.Expect(t, "runs", sorted(s.Handled(3)), "orders 1 1", "orders 2 1", "orders 3 2")
	s.ended()
	s.Log.Silent(t)
	w.put("orders", "3")
}

// holder is the process that has the group's position.
func holder(t *testing.T, path string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path+".groups", "billing", "orders.pos"))
	if err != nil {
		t.Fatal(err)
	}
	const at = 2048
	n := binary.BigEndian.Uint16(raw[at:])
	pid, owner, _ := strings.Cut(string(raw[at+2:][:n]), " ")
	number, err := strconv.Atoi(pid)
	if err != nil || owner != "endpoint in" {
		t.Fatalf("holder %q of %q: %v", pid, owner, err)
	}
	return number
}
