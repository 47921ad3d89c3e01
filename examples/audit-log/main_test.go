// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// recorder runs record with a broker in place of the pipe and one in place of the
// file.
func recorder(t *testing.T) (lines, audit *hosttest.Broker, s *hosttest.Service) {
	t.Helper()
	lines, audit = hosttest.NewBroker(), hosttest.NewBroker()
	lines.Source("actions", hosttest.Stream())
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"lines": lines, "audit": audit}), hosttest.Logger(t))
	record(h, "audit.ss")
	return lines, audit, hosttest.Start(t, h, lines, audit)
}

var (
	opened = Action{Who: "ann", Did: "opened gate 3"}
	moved  = Action{Who: "ben", Did: "moved crane 4"}
)

func TestActionsAreWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, audit, s := recorder(t)
		lines.Deliver("actions", hosttest.JSON(opened), hosttest.JSON(moved))
		s.Wait()
		written, done := fmt.Sprint(audit.Published("actions")), fmt.Sprint(lines.Published("done"))
		if want := fmt.Sprint([]hosttest.Message{hosttest.JSON(opened), hosttest.JSON(moved)}); written != want || done != want {
			t.Errorf("wrote %s, done %s; want %s", written, done, want)
		}
	})
}

// While nothing can be written down nothing is done.
func TestNothingIsDoneUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, audit, s := recorder(t)
		audit.FailPublishes("actions", hosttest.Refused, hosttest.Always)
		lines.Deliver("actions", hosttest.JSON(opened))
		s.Wait()
		if done, refused := lines.Published("done"), lines.Published("refused"); len(done) != 0 || len(refused) != 1 {
			t.Errorf("done %v, refused %v", done, refused)
		}
		audit.Heal("actions")
		lines.Deliver("actions", hosttest.JSON(moved))
		s.Wait()
		if done := lines.Published("done"); len(done) != 1 {
			t.Errorf("done %v", done)
		}
	})
}

// reader runs read on a broker in the test, to its end: the group's position is
// with the broker.
func reader(t *testing.T, audit *hosttest.Broker, out io.Writer) {
	t.Helper()
	h := host.New(audit.Replace(), hosttest.Logger(t))
	read(h, "audit.ss", "mail", out)
	if err := hosttest.Start(t, h, audit).Ended(); err != nil {
		t.Error(err)
	}
}

// A reader that comes again gets what is new.
func TestReadersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audit := hosttest.NewBroker()
		audit.Source("actions", hosttest.Group())
		audit.CatchUp("actions")
		var out strings.Builder
		audit.Deliver("actions", hosttest.JSON(opened))
		reader(t, audit, &out)
		audit.Deliver("actions", hosttest.JSON(moved))
		reader(t, audit, &out)
		reader(t, audit, &out)
		if want := "mail: ann opened gate 3\nmail: ben moved crane 4\n"; out.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", &out, want)
		}
	})
}

// jammed is a printer that takes nothing at first.
type jammed struct {
	strings.Builder
	times int
}

func (j *jammed) Write(p []byte) (int, error) {
	if j.times--; j.times >= 0 {
		return 0, errors.New("out of paper")
	}
	return j.Builder.Write(p)
}

// What cannot be printed is not read: it comes again until it is.
func TestWhatIsNotPrintedComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audit := hosttest.NewBroker()
		audit.Source("actions", hosttest.Group())
		audit.CatchUp("actions")
		audit.Deliver("actions", hosttest.JSON(opened))
		printer := &jammed{times: 3}
		reader(t, audit, printer)
		if got := printer.String(); got != "mail: ann opened gate 3\n" {
			t.Errorf("got %q", got)
		}
	})
}
