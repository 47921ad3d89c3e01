// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// startedLine is the host's log of a process.
var startedLine = regexp.MustCompile(`msg="plugin process started" .*pid=(\d+)`)

// kill kills the newest process of the plugin.
func (s *service) kill() {
	s.t.Helper()
	found := startedLine.FindAllStringSubmatch(s.Log.String(), -1)
	if len(found) == 0 {
		s.t.Fatalf("no process was started\n%s", s.Log)
	}
	pid, err := strconv.Atoi(found[len(found)-1][1])
	if err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// A process that replaces one that was killed goes on where that was: what was
// appended meanwhile is not passed over, and the start option does not hold
// again.
func TestCrashOfThePlugin(t *testing.T) {
	for name, start := range map[string]settings.Start{"from the end": {}, "from the beginning": settings.Beginning()} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings.Settings{}, host.WithRestartBackoff(10*time.Millisecond, 10*time.Millisecond))
			s.Handle(s.read("k", settings.Subscription{Start: start}), servicetest.Always(nil))
			s.Start()
			w := open(t, settings.Settings{Path: s.path}, writes("k"))
			var all []string
			put := func(n int) {
				for range n {
					all = append(all, fmt.Sprintf("k 1 %d", len(all)+1))
					w.put("k", strconv.Itoa(len(all)))
				}
			}
			put(100)
			s.Handled(100)
			for range 3 {
				s.kill()
				put(10)
				// What was on its way in the last moment may come again.
				got := s.Ran(10)
				for got[len(got)-1] != all[len(all)-1] {
					got = append(got, s.Ran(1)...)
				}
				if !slices.Equal(got, all[len(all)-len(got):]) {
					t.Errorf("got %s", strings.Join(got, ", "))
				}
			}
			w.end()
			s.stop()
		})
	}
}

// Receipts of a process that is killed in the middle of writing tell the truth:
// what was confirmed is in the file. The next process cuts off what is torn and
// goes on.
func TestCrashInMidWrite(t *testing.T) {
	for _, fsync := range []string{settings.FsyncEach, settings.FsyncNone} {
		t.Run(fsync, func(t *testing.T) { crashInMidWrite(t, fsync) })
	}
}

func crashInMidWrite(t *testing.T, fsync string) {
	const rounds, writers = 20, 4
	s := newService(t, settings.Settings{Fsync: fsync, BeaconInterval: 1024}, host.WithRestartBackoff(time.Millisecond, time.Millisecond),
		host.WithBreaker(10*rounds, time.Hour))
	s.publishes("k")
	s.Start()
	filler := strings.Repeat("p", 3000)
	confirmed := make(chan string)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d.%d", w, n)
				// A failure says that it may be in the file or not.
				if _, err := s.publishers["k"].Publish(t.Context(), core.Message{Payload: []byte(id + " " + filler)}); err != nil {
					id = ""
				}
				select {
				case confirmed <- id:
				case <-stop:
					return
				}
			}
		})
	}
	var want []string
	for round := range rounds {
		for got := 0; got < 10+7*round%31; {
			if id := <-confirmed; id != "" {
				want, got = append(want, id), got+1
			}
		}
		s.kill()
	}
	// The last of these is of the process behind the last kill, which has cut off what
	// was torn.
	for got := 0; got <= writers; {
		if id := <-confirmed; id != "" {
			want, got = append(want, id), got+1
		}
	}
	close(stop)
	all.Wait()
	there := map[string]bool{}
	for _, r := range s.stop() {
		there[strings.Fields(r)[1]] = true
	}
	for _, id := range want {
		if !there[id] {
			t.Errorf("%s was confirmed and is not in the file", id)
		}
	}
	t.Logf("%d confirmed, %d in the file", len(want), len(there))
}
