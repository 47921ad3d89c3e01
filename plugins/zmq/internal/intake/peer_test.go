// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

func (b *bench) address() string { return "tcp://" + b.ln.Addr().String() }

// S-ZMQ-13 and Z-10: what cannot be read is delivered as that, and the next one
// is read.
func TestS_ZMQ_13_Z_10_MessagesThatCannotBeRead(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	zmqtest.Python(t, `
s = ctx.socket(zmq.PUSH)
s.connect(arg[0])
for m in ([b"one"], [b"jobs", b"a: 1", b"five", b"4", b"5"], [b""], [b"jobs", b"a: 1\nno colon", b"p1"],
          [b"jobs", b"a: \xff", b"p2"], [b"j\xffobs", b"", b"p3"], [b"jobs", b"", b"good"]):
    s.send_multipart(m)
hear()
`, b.address())
	var got []string
	for len(got) < 7 {
		batch := b.receive(wide)
		for i := range batch.Deliveries {
			d := &batch.Deliveries[i]
			line := fmt.Sprintf("%s %v %s", d.Message.Name, d.Message.Headers, d.Message.Payload)
			if d.Undecodable != nil {
				line += " " + d.Undecodable.Code.String()
			}
			got = append(got, line)
		}
	}
	want := []string{
		`one [] `, `jobs [a="1"] five`, ` [] `,
		`jobs [] p1 invalid`, `jobs [] p2 invalid`, "j\uFFFDobs [] p3 invalid", `jobs [] good`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := b.in.Counters(); c.Undecodable != 3 || c.Messages != 7 {
		t.Errorf("counted %+v, want 3 of 7 undecodable", c)
	}
}

// Z-08: only the peer that announces too much must go, and the others lose
// nothing. What it sent before is delivered.
func TestZ_08_AnAbsurdLength(t *testing.T) {
	for _, c := range []struct{ name, head, reason string }{
		{"2^63-1", "\x02\x7f\xff\xff\xff\xff\xff\xff\xff", "limit is 1048576"},
		{"8 GiB", "\x02\x00\x00\x00\x02\x00\x00\x00\x00", "limit is 1048576"},
		{"3 MiB", "\x02\x00\x00\x00\x00\x00\x30\x00\x00", "limit is 1048576"},
		{"reserved flags", "\xf0\x01", "flags"},
		{"command without a name", "\x04\x00", "name"},
		{"PING without a time to live", "\x04\x05\x04PING", "PING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := listen(t, zmq4.Pull, intake.Options{}, nil)
			good, bad := b.dial(zmq4.Push, ""), b.dial(zmq4.Push, "")
			good.send("jobs", "good 0")
			bad.write(append(frames("jobs", "", "bad 0"), c.head...))
			got := b.texts(2, wide)
			// Whoever takes the next one finds it, at the latest.
			good.send("jobs", "good 1")
			got = append(got, b.texts(1, wide)...)
			done := make(chan error, 1)
			go func() { done <- b.ended() }()
			var err error
			for n := 2; err == nil; n++ {
				good.send("jobs", fmt.Sprint("good ", n))
				got = append(got, b.texts(1, wide)...)
				select {
				case err = <-done:
				default:
				}
			}
			var p *zmtp.ProtocolError
			if isPing := strings.HasPrefix(c.name, "PING"); errors.As(err, &p) == isPing || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("Serve returns %v, want a protocol error with %q", err, c.reason)
			}
			inOrder(t, got)
		})
	}
}

// The address that replies go to comes first, and nobody speaks for another.
func TestRepliesGoToWhoAsked(t *testing.T) {
	b := listen(t, zmq4.Router, intake.Options{Source: intake.Source{ReplyTo: true}}, nil)
	p := b.dial(zmq4.Dealer, "\x00\x01\xfe\xff")
	p.write(frames("sum", "a: 1\nReply-To: zmq-reply:00\nb: 2\nreply-to: zmq-reply:01", "m1"))
	p.write(frames("sum", "", "m2"))
	p.write(frames("sum"))
	p.write(frames("sum", "no colon", "m3"))
	p.write(frames("", "sum", "m4")) // a DEALER that leaves a frame empty means that
	var got []string
	for len(got) < 5 {
		batch := b.receive(wide)
		for i := range batch.Deliveries {
			d := &batch.Deliveries[i]
			got = append(got, fmt.Sprintf("%s %v %s", d.Message.Name, d.Message.Headers, d.Message.Payload))
		}
		release(batch)
	}
	want := []string{
		`sum [reply-to="zmq-reply:0001feff" a="1" b="2"] m1`,
		`sum [reply-to="zmq-reply:0001feff"] m2`,
		`sum [reply-to="zmq-reply:0001feff"] `,
		`sum [reply-to="zmq-reply:0001feff"] m3`,
		` [reply-to="zmq-reply:0001feff"] m4`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The empty frame that a REQ socket puts before its message is left out.
func TestRequestsOfREQ(t *testing.T) {
	b := listen(t, zmq4.Router, intake.Options{Source: intake.Source{ReplyTo: true}}, nil)
	zmqtest.Python(t, `
s = ctx.socket(zmq.REQ)
s.setsockopt(zmq.IDENTITY, b"me")
s.connect(arg[0])
s.send_multipart([b"sum", b"a: 1", b"m1"])
hear()
`, b.address())
	got := b.receive(wide).Deliveries[0]
	want := core.Message{Name: "sum", Payload: []byte("m1"), Headers: core.Headers{
		{Name: "reply-to", Value: []byte("zmq-reply:6d65")}, {Name: "a", Value: []byte("1")},
	}}
	if diff := cmp.Diff(want, got.Message); diff != "" || got.Undecodable != nil {
		t.Error(diff, got.Undecodable)
	}
}

// A publisher is told what is wanted, and one that sends everything all the same
// gets no more through.
func TestOnlyThePrefixIsRead(t *testing.T) {
	b := listen(t, zmq4.Sub, intake.Options{Source: intake.Source{Subscribe: true, Prefix: "events"}}, nil)
	filters := zmqtest.Python(t, `
s = ctx.socket(zmq.XPUB)
s.connect(arg[0])
say(s.recv())
for name in ("other", "events", "event", "events.eu"):
    s.send_multipart([name.encode(), b"", b"f " + name.encode()])
hear()
`, b.address())
	filters.Expect(`b'\x01events'`)
	if got, want := b.texts(2, wide), []string{"f events", "f events.eu"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	all := b.dial(zmq4.Pub, "")
	var f zmtp.Frames
	all.next(&f)
	if prefix, on, ok := zmtp.Subscription(&f); string(prefix) != "events" || !on || !ok {
		t.Errorf("the peer is told %q, want the subscription to events", f.List)
	}
	all.write(append(frames("other", "", "m1"), frames("events.us", "", "m2")...))
	if got := b.texts(1, wide); got[0] != "m2" {
		t.Errorf("got %q, want m2", got)
	}
	if c := b.in.Counters(); c.Filtered != 1 || c.Messages != 3 {
		t.Errorf("counted %+v, want 3 messages and 1 that was left out", c)
	}
}

// pinging is a peer with heartbeats that tells when its connection goes.
const pinging = `
s = ctx.socket(zmq.PUSH)
s.setsockopt(zmq.HEARTBEAT_IVL, 500)
s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2500)
s.setsockopt(zmq.HEARTBEAT_TTL, 2500)
m = s.get_monitor_socket()
def watch():
    from zmq.utils.monitor import recv_monitor_message
    while True:
        e = recv_monitor_message(m)["event"]
        if e == zmq.EVENT_DISCONNECTED:
            say("disconnected")
threading.Thread(target=watch, daemon=True).start()
s.connect(arg[0])
while True:
    line = hear()
    if line == "idle":
        time.sleep(3.1)
        say("idled")
    else:
        for n in range(int(line)):
            s.send_multipart([b"jobs", b"", b"p %d" % n])
        say("sent")
`

// idle receives nothing while the peer does nothing for a while.
func (b *bench) idle(p *zmqtest.Peer) {
	b.t.Helper()
	p.Say("idle")
	for {
		b.nothing(wide) // PINGs are no messages
		if line, ok := p.Heard(); ok {
			if line != "idled" {
				b.t.Fatalf("the peer says %q", line)
			}
			return
		}
	}
}

// Z-11: a peer with heartbeats is answered, whether it sends or not.
func TestZ_11_Heartbeats(t *testing.T) {
	t.Parallel()
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := zmqtest.Python(t, pinging, b.address())
	for range 2 {
		p.Say("1")
		p.Expect("sent")
		if got := b.texts(1, wide); got[0] != "p 0" {
			t.Errorf("got %q", got)
		}
		b.idle(p)
	}
	p.Silent("disconnected")
	if c := b.in.Counters(); c.Messages != 2 || c.Undecodable != 0 {
		t.Errorf("counted %+v, want 2 messages", c)
	}
}

// Z-11 where there is no room: its PINGs lie behind messages that nobody asks
// for yet, and the connection stays all the same.
func TestZ_11_HeartbeatsWithoutRoom(t *testing.T) {
	t.Parallel()
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := zmqtest.Python(t, pinging, b.address())
	p.Say("1")
	p.Expect("sent")
	b.texts(1, wide)
	b.idle(p)
	const many = 500
	p.Say(fmt.Sprint(many))
	p.Expect("sent")
	eventually(t, func() bool { return b.in.Ready() == 1 })
	p.Say("idle")
	p.Expect("idled")
	if got := b.texts(many, pluginapi.Room{Messages: 10, Bytes: 1 << 20}); len(got) != many || inOrder(t, got)["p"] != many {
		t.Errorf("got %d messages, want %d", len(got), many)
	}
	b.idle(p)
	p.Silent("disconnected")
}

// A peer that ends is seen at once, behind what it has sent.
func TestThePeerEnds(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := b.dial(zmq4.Push, "")
	p.send("jobs", numbers("p", 1000)...)
	p.nc.Close()
	inOrder(t, b.texts(1000, wide))
	b.nothing(wide)
	if err := b.ended(); err == nil {
		t.Error("Serve returns nil where the peer has ended")
	}
	p = b.dial(zmq4.Push, "")
	p.write(frames("jobs", "", "whole"))
	p.write(frames("jobs", "", "half a message")[:8])
	p.nc.Close()
	if got := b.texts(1, wide); got[0] != "whole" {
		t.Errorf("got %q", got)
	}
	b.nothing(wide) // half a message is found out when somebody asks for the rest
	if err := b.ended(); err == nil {
		t.Error("Serve returns nil where the peer has ended")
	}
}
