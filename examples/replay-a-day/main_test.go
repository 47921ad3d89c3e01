// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// day is the day of the tests.
var day = time.Date(2026, time.November, 29, 0, 0, 0, 0, time.UTC)

// harbour is a broker whose source settles nothing and says when it has read all
// there is, as a replay does.
func harbour() *hosttest.Broker {
	b := hosttest.NewBroker()
	b.Source("calls", hosttest.Stream())
	b.CatchUp("calls")
	return b
}

// call puts a call into it at a time.
func call(b *hosttest.Broker, at time.Time, c Call) {
	time.Sleep(time.Until(at))
	b.Deliver("calls", hosttest.JSON(c))
}

// run runs the service's own wiring until it ends by itself.
func run(t *testing.T, b *hosttest.Broker, enough func()) *sum {
	t.Helper()
	h := host.New(b.Replace(), hosttest.Logger(t))
	s := register(h, "harbour.ss", day, enough)
	if err := hosttest.Start(t, h, b).Ended(); err != nil {
		t.Error(err)
	}
	return s
}

func TestADayIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := harbour()
		call(b, day, Call{Ship: "Alma", Berth: 1, Tons: 1200})
		call(b, day.Add(12*time.Hour), Call{Ship: "Brise", Berth: 3, Tons: 300})
		call(b, day.Add(24*time.Hour-time.Millisecond), Call{Ship: "Cora", Berth: 1, Tons: 34})
		got := run(t, b, func() { t.Error("it was enough") }).String()
		want := "2026-11-29: 3 calls\nberth 1:   1234 t\nberth 2:      0 t\nberth 3:    300 t\nberth 4:      0 t\n"
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// What came on the next day is enough, and counts nowhere.
func TestTheNextDayIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := harbour()
		call(b, day.Add(23*time.Hour), Call{Ship: "Alma", Berth: 1, Tons: 1200})
		call(b, day.Add(24*time.Hour), Call{Ship: "Brise", Berth: 3, Tons: 300})
		enough := 0
		s := run(t, b, func() { enough++ })
		if enough != 1 || s.calls != 1 || s.tons[3] != 0 {
			t.Errorf("enough %d times, %d calls, %d t at berth 3", enough, s.calls, s.tons[3])
		}
	})
}

// A call that is none is left out, and the rest is read.
func TestRubbishIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := harbour()
		time.Sleep(time.Until(day))
		b.Deliver("calls", hosttest.Text("not a call"), hosttest.JSON(Call{Ship: "Alma", Berth: 2, Tons: 5}))
		if s := run(t, b, func() {}); s.calls != 1 || s.tons[2] != 5 {
			t.Errorf("%d calls, %d t at berth 2", s.calls, s.tons[2])
		}
	})
}
