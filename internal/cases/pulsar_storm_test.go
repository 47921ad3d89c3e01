// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// pulsarWeather is what a storm over Pulsar is made of.
type pulsarWeather struct {
	messages int
	stops    int // of the broker, as a service manager does
	deaths   int // of the broker, by kill -9
	kills    int // of a plugin
}

// The storm of a test run, and those of make soak-pulsar.
var (
	pulsarGust = pulsarWeather{1500, 0, 1, 2}
	pulsarGale = pulsarWeather{100_000, 2, 3, 20}
)

const (
	stormTopic = "public/default/t"
	stormDead  = "public/default/q"
	stormCap   = 3
	stormHosts = 3
)

// pulsarStorm is three hosts in processes of their own, with a plugin each, on one
// subscription; plugins are killed and the broker is restarted while messages come.
type pulsarStorm struct {
	t      *testing.T
	w      pulsarWeather
	rand   *rand.Rand
	b      *pulsarbroker.Broker
	peer   *pulsarPeer
	hosts  []*process
	script func(i int) string // of a message

	through atomic.Int64 // messages that were acked, or have had their last attempt
	event   atomic.Int64 // how many there were
	readers sync.WaitGroup
	mu      sync.Mutex
	runs    map[pulsarRun]int
	done    []bool
	again   []int // runs too many, by the event before them
	beyond  int   // runs beyond the cap
	sizes   []int // of the first host's plugin, from the first event on
}

// pulsarRun is what has one run where nothing is disturbed.
type pulsarRun struct {
	message int
	attempt uint64
}

func newPulsarStorm(t *testing.T, w pulsarWeather, kind string, script func(i int) string) *pulsarStorm {
	t.Helper()
	seed := uint64(1)
	if *soak {
		seed = rand.Uint64()
	}
	t.Logf("%+v, seed %d", w, seed)
	x := &pulsarStorm{
		t: t, w: w, rand: rand.New(rand.NewPCG(seed, 0)), script: script, b: pulsarbroker.Start(t, pulsarbroker.Config{}),
		runs: map[pulsarRun]int{}, done: make([]bool, w.messages), again: make([]int, 1+w.stops+w.deaths+w.kills),
	}
	x.peer = newPulsarPeer(t, x.b)
	for range stormHosts {
		x.host(kind)
	}
	return x
}

// host starts one more host and notes what it runs.
func (x *pulsarStorm) host(kind string) {
	x.t.Helper()
	p := startChild(x.t, childConfig{
		Endpoints: []childEndpoint{pulsarEndpoint(x.t, x.b)}, Crashes: 1000,
		Subscriptions: []childSubscription{{
			From: "in", Name: stormTopic, Cap: stormCap, Dead: stormDead, Options: fromEarliest(kind),
			Workers: 16, ByKey: kind == settings.TypeKeyShared, Takes: 10 * time.Millisecond,
		}},
	}, nil)
	p.next("ready")
	x.hosts = append(x.hosts, p)
	x.readers.Go(func() {
		for e := range p.events {
			if e.Kind == "run" {
				x.ran(e)
			}
		}
	})
}

// ran notes a run.
func (x *pulsarStorm) ran(e event) {
	i, err := strconv.Atoi(e.Payload)
	if err != nil {
		x.t.Errorf("a message is %q", e.Payload)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := pulsarRun{i, e.Attempt}
	if x.runs[r]++; x.runs[r] > 1 {
		x.again[x.event.Load()]++
	}
	if e.Attempt > stormCap {
		x.beyond++
	}
	if !x.done[i] && (e.Attempt >= stormCap || stepOf(x.script(i), e.Attempt) == "ack") {
		x.done[i] = true
		x.through.Add(1)
	}
}

// storms feeds all messages, and disturbs on the way.
func (x *pulsarStorm) storms() {
	x.t.Helper()
	began := time.Now()
	events := slices.Concat(slices.Repeat([]func(){x.stop}, x.w.stops), slices.Repeat([]func(){x.die}, x.w.deaths), slices.Repeat([]func(){x.kill}, x.w.kills))
	x.rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	step := x.w.messages / len(x.again)
	for i, e := range events {
		x.feed(i*step, (i+1)*step, i%2 == 0)
		x.moves(i*step + step/4)
		if i%5 == 0 {
			x.sizes = append(x.sizes, x.memory())
		}
		x.event.Add(1)
		e()
	}
	x.feed(len(events)*step, x.w.messages, false)
	x.settles()
	x.sizes = append(x.sizes, x.memory())
	x.t.Logf("%d messages, %v; a plugin that was never killed has %v MiB", x.w.messages, time.Since(began).Round(100*time.Millisecond), x.sizes)
}

// memory is what the plugin of the first host has in memory, in MiB, 0 where the
// system does not say so.
func (x *pulsarStorm) memory() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.hosts[0].plugins()["in"]))
	if err != nil {
		return 0
	}
	var kib int
	if _, rest, ok := strings.Cut(string(text), "VmRSS:"); ok {
		_, _ = fmt.Sscan(rest, &kib) // a process that is gone has none
	}
	return kib >> 10
}

// feed publishes messages, one by one or in batches of those of a key.
func (x *pulsarStorm) feed(from, to int, batches bool) {
	x.t.Helper()
	var ms []*lib.ProducerMessage
	for i := from; i < to; i++ {
		ms = append(ms, &lib.ProducerMessage{
			Payload: []byte(strconv.Itoa(i)), Key: strconv.Itoa(i % 50), Properties: map[string]string{scriptHeader: x.script(i)},
		})
	}
	x.peer.put(lib.ProducerOptions{Topic: stormTopic, DisableBatching: !batches, BatcherBuilderType: lib.KeyBasedBatchBuilder}, ms...)
}

// moves waits until so many messages are through, or all that there are, as long as
// there are more and more.
func (x *pulsarStorm) moves(n int) {
	x.t.Helper()
	x.less(func() bool { return x.through.Load() >= int64(n) })
}

// settles waits until the broker has nothing left, as long as it has less and less.
func (x *pulsarStorm) settles() {
	x.t.Helper()
	x.less(func() bool { return false })
}

// less waits until ok says so, or the broker has nothing left.
func (x *pulsarStorm) less(ok func() bool) {
	x.t.Helper()
	last, since := int64(-1), time.Now()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for ; !ok(); <-look.C {
		now := x.b.Backlog(stormTopic, pulsarSub)
		if now == 0 {
			return
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > 2*patience {
			x.t.Fatalf("it stands still, %d through, at event %d: %+v", x.through.Load(), x.event.Load(), x.b.Stats(stormTopic))
		}
	}
}

// stop stops the broker as a service manager does, and starts it.
func (x *pulsarStorm) stop() {
	x.t.Helper()
	x.b.Stop()
	x.b.Start()
}

// die kills the broker, and starts it.
func (x *pulsarStorm) die() {
	x.t.Helper()
	x.b.Kill()
	x.b.Start()
}

// kill kills a plugin, but that of the first host: its memory is looked at.
func (x *pulsarStorm) kill() {
	x.t.Helper()
	pid := x.hosts[1+x.rand.IntN(len(x.hosts)-1)].plugins()["in"]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // the last one may have hit it just now
		x.t.Fatal(err)
	}
}

// account stops the hosts, and checks that each message was acked or is a dead
// letter. It says how many runs and dead letters there were too many.
func (x *pulsarStorm) account() {
	x.t.Helper()
	for _, p := range x.hosts {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range x.hosts {
		if status := p.status(); status != 0 {
			x.t.Errorf("a host ends with status %d", status)
		}
	}
	x.readers.Wait()
	x.b.AwaitBacklog(stormTopic, pulsarSub, 0)
	dead := x.peer.read(stormDead)
	x.mu.Lock()
	defer x.mu.Unlock()
	lost, letters, twice, wrong := 0, 0, 0, 0
	for i := range x.done {
		n := dead[strconv.Itoa(i)]
		fails := x.script(i) == "retry"
		if n == 0 && (fails || !x.done[i]) {
			if lost++; lost <= 20 {
				x.t.Errorf("message %d (%s) is lost; runs of attempts 1 to 4: %d %d %d %d", i, x.script(i), x.runs[pulsarRun{i, 1}], x.runs[pulsarRun{i, 2}], x.runs[pulsarRun{i, 3}], x.runs[pulsarRun{i, 4}])
			}
		}
		if n > 0 && !fails {
			wrong++
		}
		if fails {
			letters++
			twice += max(n-1, 0)
		}
	}
	doubles, worst := 0, 0
	for _, n := range x.again {
		doubles, worst = doubles+n, max(worst, n)
	}
	x.t.Logf("%d stops and %d deaths of the broker, %d kills: %d lost; %d runs too many, at most %d behind one event %v, %d beyond the cap; %d dead letters, %d too many, and %d by the count of their batch",
		x.w.stops, x.w.deaths, x.w.kills, lost, doubles, worst, x.again, x.beyond, letters, twice, wrong)
	if lost > 0 || x.again[0] > 0 {
		x.t.Errorf("%d messages are lost, %d runs too many before the first event", lost, x.again[0])
	}
}

// mixed has some messages fail once, some ask for a wait, and some fail for good.
func mixed(i int) string {
	switch {
	case i%50 == 7:
		return "retry"
	case i%10 == 3:
		return "retry;ack"
	case i%100 == 9:
		return "later 100ms;ack"
	default:
		return "ack"
	}
}

// Three hosts share a subscription through restarts of the broker and kills of their
// plugins: each message is acked by a handler that took it, or is a dead letter.
func TestStormOverPulsar(t *testing.T) {
	w := pulsarGust
	if *soak {
		w = pulsarGale
	}
	for _, tt := range []struct {
		name   string
		kind   string
		long   bool // not in every test run
		script func(i int) string
	}{
		{"shared", settings.TypeShared, false, mixed},
		{"a tail of dead letters", settings.TypeShared, true, func(i int) string {
			if i >= w.messages*4/5 {
				return "retry"
			}
			return mixed(i)
		}},
		{"key_shared", settings.TypeKeyShared, true, mixed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long && !*soak {
				t.Skip("one of make soak-pulsar")
			}
			if !*soak {
				t.Parallel()
			}
			x := newPulsarStorm(t, w, tt.kind, tt.script)
			x.storms()
			x.account()
		})
	}
}
