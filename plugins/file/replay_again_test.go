// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// growth is what a run has read and what the file holds after it, by attempts.
type growth struct {
	Runs [4]int // handler runs at attempt 1, 2, 3, and beyond
	Held [3]int // originals, first copies, second copies
	Dead int    // dead letters
}

// F-07: what fails adds one record for each record that is read, never beyond the
// cap, and nothing for dead letters. docs/file.md has these numbers.
func TestF07ReplayAgain(t *testing.T) {
	const n = 10
	for _, tt := range []struct {
		name string
		sub  settings.Subscription
		want []growth // after each run
	}{
		{"replay", settings.Subscription{Replay: true}, []growth{
			{Runs: [4]int{n}, Held: [3]int{n, n}},
			{Runs: [4]int{n, n}, Held: [3]int{n, 2 * n, n}},
			{Runs: [4]int{n, 2 * n, n}, Held: [3]int{n, 3 * n, 3 * n}, Dead: n},
		}},
		{"group", settings.Subscription{Replay: true, Group: "g"}, []growth{
			{Runs: [4]int{n, n, n}, Held: [3]int{n}, Dead: n},
			{Held: [3]int{n}, Dead: n},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var records []string
			for i := range n {
				records = append(records, fmt.Sprintf("k %d", i+1))
			}
			path := written(t, records...)
			for run, want := range tt.want {
				var got growth
				s := newService(t, settings.Settings{Path: path, ExistingOnly: true})
				s.Handle(s.read("k", tt.sub), servicetest.Always(host.Retry(errors.New("no"))),
					host.MaxAttempts(3), host.DeadLetterTo(s.in.To("dlq")))
				s.Launch()
				if err := s.Wait(); err != nil {
					t.Fatalf("run %d ended with %v\n%s", run+1, err, s.Log)
				}
				for _, r := range s.Runs() {
					var attempt int
					if _, err := fmt.Sscanf(r, "k %d", &attempt); err != nil {
						t.Fatal(err)
					}
					got.Runs[min(attempt, 4)-1]++
				}
				for _, r := range contents(t, path) {
					switch _, count, copied := strings.Cut(r, "x-ruststream-retry-count="); {
					case strings.HasPrefix(r, "dlq "):
						got.Dead++
					case !copied:
						got.Held[0]++
					case strings.HasPrefix(count, "1"):
						got.Held[1]++
					default:
						got.Held[2]++
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("run %d (-want +got):\n%s", run+1, diff)
				}
			}
		})
	}
}

// A replay whose copies the next one reads is told of at start, and by Explain.
func TestReplaysThatGrowAreToldOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		r     pluginapi.Registration
		o     settings.Subscription
		grows bool
	}{
		{"cap", pluginapi.Registration{Attempts: 3, DeadLetter: "dlq"}, settings.Subscription{Replay: true}, true},
		{"backoff", pluginapi.Registration{Backoff: time.Second}, settings.Subscription{Replay: true}, true},
		{"cap of one", pluginapi.Registration{Attempts: 1}, settings.Subscription{Replay: true}, false},
		{"dead letter alone", pluginapi.Registration{DeadLetter: "dlq", Backoff: time.Second}, settings.Subscription{Replay: true}, false},
		{"nothing declared", pluginapi.Registration{}, settings.Subscription{Replay: true}, false},
		{"elsewhere", pluginapi.Registration{Attempts: 3, RetryTo: "again"}, settings.Subscription{Replay: true}, false},
		{"group", pluginapi.Registration{Attempts: 3}, settings.Subscription{Replay: true, Group: "g"}, false},
		{"live", pluginapi.Registration{Attempts: 3}, settings.Subscription{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Name, tt.r.Options = "k", registration(t, 0, "k", tt.o).Options
			got := inspect(t, settings.Settings{}, pluginapi.Usage{Registrations: []pluginapi.Registration{tt.r}})
			fs := got.Registrations[0].Findings
			if grows := len(fs) == 1 && fs[0].Warning && fs[0].Option == "replay" && fs[0].Fix != ""; grows != tt.grows || len(fs) > 1 {
				t.Errorf("findings %+v", fs)
			}
		})
	}
}
