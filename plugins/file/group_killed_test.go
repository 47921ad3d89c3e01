// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// groupChild names the file that a child process reads until it is killed.
const groupChild = "LONGSHORE_TEST_GROUP_CHILD"

// readUntilKilled reads with a group and settles at random, at last everything.
// It says on standard output what happens: "got" what it was handed, "acking"
// what it is about to ack, "acked" what the subscription has accepted, then
// "done".
func readUntilKilled(path string) {
	ctx := context.Background()
	raw, err := pluginapi.EncodeSettings(settings.Settings{Path: path})
	check(err)
	endpoint, err := file.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions(raw), Endpoint: "child", Generation: 1})
	check(err)
	endpoint.Inspect(pluginapi.Usage{})
	conn, err := endpoint.Connect(ctx, nil)
	check(err)
	options, err := pluginapi.EncodeOptions(settings.Subscription{Group: "billing", Replay: true})
	check(err)
	sub, err := conn.Subscribe(ctx, pluginapi.Registration{Name: "orders", Options: options})
	check(err)
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 7))
	var hand []pluginapi.Delivery // not settled yet
	for {
		got, err := sub.Receive(ctx, pluginapi.Room{Messages: 1 + random.IntN(50), Bytes: 1 << 20})
		check(err)
		hand = append(hand, got.Deliveries...)
		say("got", got.Deliveries)
		if got.CaughtUp {
			break
		}
		random.Shuffle(len(hand), func(i, k int) { hand[i], hand[k] = hand[k], hand[i] })
		// Where some are kept one is handed back, so that there is more to receive.
		n := len(hand)
		if n > 20 && hand[0].Attempt < 50 {
			n = 1 + random.IntN(n)
		}
		var acks []pluginapi.Delivery
		vs := make([]pluginapi.Verdict, n)
		for i, d := range hand[:n] {
			vs[i] = pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck}
			if d.Attempt < 50 && (random.IntN(5) == 0 || i == 0 && n < len(hand)) {
				vs[i].Kind = core.VerdictRequeue
			} else {
				acks = append(acks, d)
			}
		}
		say("acking", acks)
		for _, r := range sub.Settle(ctx, vs) {
			if r.Status != pluginapi.ResultDone {
				log.Fatalf("settle: %v", r.Status)
			}
		}
		say("acked", acks)
		hand = append(hand[:0], hand[n:]...)
	}
	fmt.Println("done")
	check(sub.Close(ctx))
	_, err = conn.Close(ctx)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// say prints a line for each delivery, in one write.
func say(what string, ds []pluginapi.Delivery) {
	var b bytes.Buffer
	for _, d := range ds {
		fmt.Fprintf(&b, "%s %s %d\n", what, d.Message.Payload, d.Attempt)
	}
	_, err := os.Stdout.Write(b.Bytes())
	check(err)
}

// witness is what a parent knows of what its children have read.
type witness struct {
	t     *testing.T
	last  map[string]int // attempt of the last delivery that was seen
	acked map[string]bool
	maybe map[string]bool // an ack was under way at a kill
	done  bool
}

// read takes one line of a child.
func (w *witness) read(line string) {
	if line == "done" {
		w.done = true
		return
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		w.t.Fatalf("child says %q", line)
	}
	n, err := strconv.Atoi(f[2])
	if err != nil {
		w.t.Fatal(err)
	}
	switch p := f[1]; f[0] {
	case "got":
		if w.acked[p] {
			w.t.Errorf("record %s comes again, attempt %d, and was acked at %d", p, n, w.last[p])
		}
		if n <= w.last[p] {
			w.t.Errorf("record %s comes with attempt %d behind attempt %d", p, n, w.last[p])
		}
		w.last[p] = n
		delete(w.maybe, p)
	case "acking":
		w.maybe[p] = true
	case "acked":
		w.acked[p] = true
		delete(w.maybe, p)
	default:
		w.t.Fatalf("child says %q", line)
	}
}

// round lets a child read and kills it after some lines, 0 = never.
func (w *witness) round(path string, lines int, meanwhile func(pid int)) {
	w.t.Helper()
	child := exec.CommandContext(w.t.Context(), os.Args[0])
	child.Env = append(os.Environ(), groupChild+"="+path)
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		w.t.Fatal(err)
	}
	said := bufio.NewReader(stdout)
	for i := 1; ; i++ {
		line, err := said.ReadString('\n')
		if err != nil { // half a line of a killed one says nothing
			break
		}
		w.read(strings.TrimSuffix(line, "\n"))
		if i == 1 && meanwhile != nil {
			meanwhile(child.Process.Pid)
		}
		if i == lines {
			if err := child.Process.Kill(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err != nil && lines == 0 {
		w.t.Error(err)
	}
}

// Readers that are killed at any moment lose nothing and get nothing again that
// they acked; attempts count every delivery.
func TestGroupThatIsKilled(t *testing.T) {
	const records, rounds = 40_000, 20
	path := newPath(t)
	b := open(t, settings.Settings{Path: path}, writes("orders"))
	var msgs []pluginapi.Outgoing
	for i := range records {
		msgs = append(msgs, servicetest.Message("orders", strconv.Itoa(i)))
	}
	b.publish(msgs...)
	b.end()
	w := &witness{t: t, last: map[string]int{}, acked: map[string]bool{}, maybe: map[string]bool{}}
	for i := range rounds {
		var meanwhile func(pid int)
		if i == 0 {
			meanwhile = func(pid int) {
				other := open(t, settings.Settings{Path: path}, pluginapi.Usage{})
				other.refusesGroup(core.FaultConflict, strconv.Itoa(pid), "endpoint child")
				other.end()
			}
		}
		w.round(path, 1+rand.IntN(600), meanwhile)
		if w.done {
			t.Fatalf("all %d records are read after %d rounds", records, i+1)
		}
	}
	t.Logf("%d of %d records acked, %d acks cut off, in %d rounds", len(w.acked), records, len(w.maybe), rounds)
	before := len(w.acked)
	w.round(path, 0, nil)
	if !w.done {
		t.Error("the last reader does not catch up")
	}
	lost := 0
	for i := range records {
		if p := strconv.Itoa(i); !w.acked[p] && !w.maybe[p] {
			lost++
		}
	}
	if lost > 0 || before == 0 {
		t.Errorf("%d records never came again; %d were acked before the last round", lost, before)
	}
}
