// SPDX-License-Identifier: Apache-2.0

// Command replay-a-day handles what a stream file got on one day once more, and
// ends when it has read it. main_test.go tests it; harbour.ss holds the calls of
// three days.
//
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/replay-a-day examples/replay-a-day/harbour.ss 2026-11-29
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// Call is a ship at a berth.
type Call struct {
	Ship  string `json:"ship"`
	Berth int    `json:"berth"`
	Tons  int    `json:"tons"`
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: replay-a-day FILE DAY, as in: replay-a-day harbour.ss 2026-11-29")
	}
	day, err := time.Parse(time.DateOnly, os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	h := host.New()
	sum := register(h, os.Args[1], day, enough)
	if err := host.RunUntilSignal(ctx, h); err != nil {
		log.Fatal(err)
	}
	fmt.Print(sum)
}

// register reads the calls of a day in UTC; enough is called at the first one
// behind it.
func register(h *host.Host, path string, day time.Time, enough func()) *sum {
	s := &sum{day: day, tons: map[int]int{}}
	harbour := h.Endpoint("harbour", host.Plugin{Name: "file"}, settings.Settings{Path: path, ExistingOnly: true})
	calls := harbour.Subscription("calls", host.Options(settings.Subscription{
		Replay: true,                                       // end where the file ends, in place of waiting for more
		Start:  settings.After(day.Add(-time.Millisecond)), // it is strictly later than that
	}))
	host.Handle(calls, func(_ context.Context, m *host.Message[Call]) error {
		if !m.Published().Before(day.AddDate(0, 0, 1)) {
			enough() // the rest of a long file need not be read
			return nil
		}
		s.calls++
		s.tons[m.Value.Berth] += m.Value.Tons
		return nil
	})
	return s
}

// sum is what a day came to.
type sum struct {
	day   time.Time
	calls int
	tons  map[int]int // by berth
}

// String writes the sum down.
func (s *sum) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d calls\n", s.day.Format(time.DateOnly), s.calls)
	for berth := 1; berth <= 4; berth++ {
		fmt.Fprintf(&b, "berth %d: %6d t\n", berth, s.tons[berth])
	}
	return b.String()
}
