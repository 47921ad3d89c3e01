// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// floodWindow is how many messages of a flood wait for receipts, as of a host.
const floodWindow = 1024

// flood publishes numbered messages without a pause and keeps their receipts.
type flood struct {
	stop chan struct{}
	done chan struct{}

	mu       sync.Mutex
	receipts []pluginapi.ReceiptStatus
	waiting  int
	room     sync.Cond
}

func (b *bench) flood() *flood {
	f := &flood{stop: make(chan struct{}), done: make(chan struct{})}
	f.room.L = &f.mu
	go f.run(b)
	b.t.Cleanup(func() { b.end(); <-f.done })
	return f
}

// numbered is message i of a flood.
func numbered(i int) string { return strconv.Itoa(i) + " " + strings.Repeat("x", 200) }

func (f *flood) run(b *bench) {
	defer close(f.done)
	for i := 0; ; i++ {
		select {
		case <-f.stop:
			return
		case <-b.ctx.Done():
			return
		default:
		}
		f.mu.Lock()
		for f.waiting >= floodWindow {
			f.room.Wait()
		}
		f.waiting++
		f.receipts = append(f.receipts, 0)
		f.mu.Unlock()
		b.conn.Publish(b.ctx, []pluginapi.Outgoing{servicetest.Message("jobs", numbered(i))}, func(_ int, r pluginapi.Receipt) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.receipts[i] = r.Status
			f.waiting--
			f.room.Signal()
		})
	}
}

// end publishes no more.
func (f *flood) end() { close(f.stop); <-f.done }

// of counts receipts.
func (f *flood) of(s pluginapi.ReceiptStatus) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.receipts {
		if r == s {
			n++
		}
	}
	return n
}

// handled is what readers have had, by number.
type handled map[int]bool

// some takes n messages.
func (h handled) some(b *bench, s pluginapi.Subscription, n int) {
	b.t.Helper()
	for _, d := range b.take(s, n) {
		h.add(b, &d.Message)
	}
}

func (h handled) add(b *bench, m *core.Message) {
	b.t.Helper()
	number, _, _ := strings.Cut(string(m.Payload), " ")
	i, err := strconv.Atoi(number)
	if err != nil || h[i] {
		b.t.Fatalf("message %q came twice: %v, %v", number, h[i], err)
	}
	h[i] = true
}

// upTo takes a message and reports whether it is another one than the last.
func (h handled) upTo(b *bench, s pluginapi.Subscription, last string) bool {
	b.t.Helper()
	m := &b.take(s, 1)[0].Message
	if string(m.Payload) == last {
		return false
	}
	h.add(b, m)
	return true
}

var lostRead = regexp.MustCompile(`messages are lost.* read=(\d+)`)

// lost is how many messages readers have told to be lost.
func lost(t testing.TB, log fmt.Stringer) (n int) {
	t.Helper()
	for _, m := range lostRead.FindAllStringSubmatch(log.String(), -1) {
		i, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		n += i
	}
	if strings.Contains(log.String(), "cut_off") {
		t.Errorf("a sender had to be cut off: %s", log)
	}
	return n
}

// Readers stop in the midst of a flood, one after the other, each in another way.
// What was confirmed was handled or is told as lost, to the message; nothing is
// handled twice.
func TestStopInFlood(t *testing.T) {
	for _, network := range []string{"tcp", "ipc"} {
		t.Run(network+"/reader dials", func(t *testing.T) { t.Parallel(); stopInFlood(t, network, false, 20) })
		// Each time the sender waits longer before it dials again.
		t.Run(network+"/reader binds", func(t *testing.T) { t.Parallel(); stopInFlood(t, network, true, 6) })
	}
}

// floodAddress is an address that is taken again and again.
func floodAddress(t *testing.T, network string) string {
	if network == "ipc" {
		return "ipc://" + filepath.Join(t.TempDir(), "s.sock")
	}
	return heldPort(t)
}

// floodReader are the settings of a reader that cuts no sender off that is slow to
// see its end.
func floodReader(address string, binding bool) settings.Settings {
	set := dials(settings.PatternQueue, address)
	if binding {
		set = binds(settings.PatternQueue, address)
	}
	set.Linger = core.Duration(servicetest.Limit / 3)
	return set
}

func stopInFlood(t *testing.T, network string, binding bool, stops int) {
	address := floodAddress(t, network)
	var sender *bench
	if !binding {
		sender = connect(t, binds(settings.PatternQueue, address), pluginapi.Usage{})
		address = sender.address()
	}
	open := func() *bench { return connect(t, floodReader(address, binding), reading("jobs")) }
	reader := open()
	if binding {
		address = reader.address()
		sender = connect(t, dials(settings.PatternQueue, address), pluginapi.Usage{})
	}
	f := sender.flood()
	had, told := handled{}, 0
	for i := range stops {
		s := reader.subscribe("jobs")
		had.some(reader, s, 100+150*(i%20))
		if i%2 == 0 {
			s.(pluginapi.IntakeStopper).StopIntake()
		}
		if i%3 == 0 { // opened again by the same endpoint
			if err := s.Close(reader.ctx); err != nil {
				t.Fatal(err)
			}
			continue
		}
		reader.end()
		told += lost(t, reader.log)
		reader = open()
	}
	f.end()
	last := reader.subscribe("jobs")
	for told += lost(t, reader.log); f.of(0) > 0 || len(had)+told < f.of(pluginapi.ReceiptConfirmed); {
		had.some(reader, last, 1)
	}
	reader.quiet(last)
	confirmed, unknown, refused := f.of(pluginapi.ReceiptConfirmed), f.of(pluginapi.ReceiptUnknown), f.of(pluginapi.ReceiptRefused)
	t.Logf("%d confirmed = %d handled + %d told lost; %d unknown, %d refused", confirmed, len(had), told, unknown, refused)
	if len(had)+told != confirmed || refused > 0 || unknown > 0 {
		t.Errorf("%d confirmed, of which %d were handled and %d told lost; %d unknown, %d refused", confirmed, len(had), told, unknown, refused)
	}
	for i := range had {
		if r := f.receipts[i]; r != pluginapi.ReceiptConfirmed {
			t.Errorf("message %d was handled, and its receipt is %v", i, r)
		}
	}
}

// flooder is a PUSH of libzmq that sends numbered messages without a pause until
// it is told not to, then one that says "last", and how many those were.
const flooder = `
s = ctx.socket(zmq.PUSH)
s.setsockopt(zmq.RECONNECT_IVL, 10)
s.setsockopt(zmq.SNDTIMEO, 100)
getattr(s, arg[0])(arg[1])
say(s.getsockopt_string(zmq.LAST_ENDPOINT))
ended = threading.Event()
def wait():
    hear()
    ended.set()
    hear()
threading.Thread(target=wait, daemon=True).start()
n = 0
tail = b" " + 200 * b"x"
def send(what):
    while True:
        try:
            s.send_multipart([b"jobs", b"", what])
            return
        except zmq.Again:
            if ended.is_set():
                return
while not ended.is_set():
    send(b"%d" % n + tail)
    n += 1
while True:
    try:
        s.send_multipart([b"jobs", b"", b"last"])
        break
    except zmq.Again:
        pass
say(n)
threading.Event().wait()
`

// What libzmq loses with a connection on its own: what it has encoded, 8 KiB at a
// time, and where it binds the queue of that peer (ZMQ_SNDHWM).
const (
	engineMessages = 8<<10/200 + 1
	queueMessages  = 1000
)

// A sender of libzmq hears the end of a reader just so, and nothing goes missing
// but what it loses itself.
func TestStopInFloodOfLibzmq(t *testing.T) {
	for _, network := range []string{"tcp", "ipc"} {
		for _, binding := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/reader binds=%v", network, binding), func(t *testing.T) { t.Parallel(); stopInFloodOfLibzmq(t, network, binding) })
		}
	}
}

func stopInFloodOfLibzmq(t *testing.T, network string, binding bool) {
	const stops = 20
	address := floodAddress(t, network)
	way := map[bool]string{true: "connect", false: "bind"}[binding]
	open := func() *bench { return connect(t, floodReader(address, binding), reading("jobs")) }
	sender := zmqtest.Python(t, flooder, way, address)
	sender.Line()
	reader := open()
	had, told := handled{}, 0
	for i := range stops {
		s := reader.subscribe("jobs")
		had.some(reader, s, 100+150*(i%20))
		if i%2 == 0 {
			s.(pluginapi.IntakeStopper).StopIntake()
		}
		reader.end()
		told += lost(t, reader.log)
		reader = open()
	}
	rest := reader.subscribe("jobs")
	had.some(reader, rest, 100)
	sender.Say("stop")
	for had.upTo(reader, rest, "last") {
	}
	sent, err := strconv.Atoi(sender.Line())
	if err != nil {
		t.Fatal(err)
	}
	untold := sent - len(had) - told
	t.Logf("%d sent = %d handled + %d told lost + %d", sent, len(had), told, untold)
	most := stops * engineMessages
	if !binding {
		most += stops * queueMessages
	}
	if untold < 0 || untold > most {
		t.Errorf("of %d sent %d were handled and %d told lost: %d are missing, want at most %d", sent, len(had), told, untold, most)
	}
}
