// SPDX-License-Identifier: Apache-2.0

package libzmq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestSocketsOfTwoProcesses(t *testing.T) {
	a, b := libzmq.Start(t), libzmq.Start(t)
	pull := a.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
	if strings.HasSuffix(pull.Address(), "*") {
		t.Fatalf("it listens at %s", pull.Address())
	}
	push := b.Open("PUSH", libzmq.Options{Connect: []string{pull.Address()}, Set: map[string]int{"SNDHWM": 10}})
	push.Send("jobs", "", "\x00\xff")
	push.Send("jobs")
	if d := cmp.Diff([][][]byte{{[]byte("jobs"), {}, {0, 0xff}}, {[]byte("jobs")}}, pull.Receive(2)); d != "" {
		t.Errorf("received (-want +got):\n%s", d)
	}
	push.Sees("HANDSHAKE_SUCCEEDED")
	push.Send("last")
	if got := pull.Rest(); len(got) != 1 || string(got[0][0]) != "last" {
		t.Errorf("the rest: %q", got)
	}
	pull.Close()
	push.Sees("DISCONNECTED")
	again := a.Open("PULL", libzmq.Options{Bind: []string{pull.Address()}})
	push.Send("back")
	again.Receive(1)
	a.Kill()
	push.Sees("DISCONNECTED")
	if err := push.TrySend(1000, 50*time.Millisecond, "x"); err == nil || !strings.Contains(err.Error(), "Again") {
		t.Errorf("sent to nobody: %v", err)
	}
}
