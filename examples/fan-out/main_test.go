// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A reader shows what it gets, and nothing of what asked only whether it is there.
func TestAReaderShowsWhatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		press, again := hosttest.NewBroker(), hosttest.NewBroker()
		dialed := hosttest.Stream()
		dialed.Address = "" // nothing can be sent to a publisher
		press.Source(sport, dialed)
		again.Source(sport, hosttest.Stream())
		got := make(chan string, 2)
		h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"press": press, "again": again}), hosttest.Logger(t))
		read(h, sport, "tcp://127.0.0.1:5556", got)
		s := hosttest.Start(t, h, press, again)
		press.Deliver(sport, hosttest.Text(""), hosttest.Text("a draw"))
		s.Wait()
		if line, want := <-got, "the reader of sport.* got sport.: a draw"; line != want || len(got) != 0 {
			t.Errorf("got %q and %d more, want %q", line, len(got), want)
		}
	})
}
