// SPDX-License-Identifier: Apache-2.0

package service

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// The service files of the examples run on a broker in the test: their commands
// and policies are real, their transports are not.
func TestServiceFilesOfTheExamples(t *testing.T) {
	for _, tt := range []struct {
		file, subscription string
		source             core.Capabilities
		in                 []string
		out, dead          string // names
		wantOut, wantDead  []string
	}{
		{
			file: "examples/filter/filter.yaml", subscription: "words", source: hosttest.Stream(),
			in: []string{"harbour", "pier", "", "quay", "crane"}, out: "out",
			wantOut: []string{"hoist", "jetty", "port"},
		},
		{
			file: "examples/custom-transport/service.yaml", subscription: "numbers", source: hosttest.DelayQueue(),
			in: []string{"1", "2", "3"}, out: "squares",
			wantOut: []string{"1 squared is 1", "2 squared is 4", "3 squared is 9"},
		},
		{
			file: "examples/tail-to-pipe/tail.yaml", subscription: "cranes.*", source: pattern(hosttest.Group()),
			in: []string{"crane 4 moves", "crane 7 moves"}, out: "cranes",
			wantOut: []string{"crane 4 moves", "crane 7 moves"},
		},
		{
			file: "examples/tail-to-pipe/append.yaml", subscription: "gate", source: hosttest.Stream(),
			in: []string{"gate 3 is open"}, out: "gates",
			wantOut: []string{"gate 3 is open"},
		},
		{
			file: "examples/redis-transport/service.yaml", subscription: "orders", source: counting(hosttest.Lease()),
			in: []string{"three loaves\n", "no bread\n"}, out: "orders.done", dead: "orders.dead",
			wantOut: []string{"three loaves, attempt 1"}, wantDead: []string{"no bread\n"},
		},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Chdir("../../../..")
			t.Setenv("REDIS_ADDRESS", "nowhere:6379")
			t.Setenv("LOG", "harbour.ss")
			f, err := config.Load(tt.file, os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			b := hosttest.NewBroker(hosttest.WaitLimit(time.Minute))
			b.Source(tt.subscription, tt.source)
			h, found := Build(f, Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Host: []host.Option{b.Replace()}})
			if len(found) > 0 {
				t.Fatal(found)
			}
			s := hosttest.Start(t, h, b)
			for _, text := range tt.in {
				b.Deliver(tt.subscription, hosttest.Text(text))
			}
			s.Wait()
			if diff := cmp.Diff(tt.wantOut, texts(b.Published(tt.out))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.out, diff)
			}
			if diff := cmp.Diff(tt.wantDead, texts(b.Published(tt.dead))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.dead, diff)
			}
		})
	}
}

// pattern makes a source one of many keys, which has no address of its own.
func pattern(c core.Capabilities) core.Capabilities {
	c.Address = ""
	return c
}

// counting makes a source count and requeue after a delay.
func counting(c core.Capabilities) core.Capabilities {
	c.Counts, c.Requeue, c.Extend = core.CountNative, core.RequeueDelayed, true
	return c
}

func texts(ms []hosttest.Message) []string {
	var ts []string
	for _, m := range ms {
		ts = append(ts, m.Text())
	}
	slices.Sort(ts)
	return ts
}
