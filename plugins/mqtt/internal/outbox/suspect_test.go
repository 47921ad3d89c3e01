// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Behind the third connection that ends without an answer what was sent goes out
// one by one, and the message that is alone on those that end is given up. Then all
// goes as before, and the same message is refused at once.
func TestSuspect(t *testing.T) {
	for qos := byte(1); qos <= 2; qos++ {
		t.Run(fmt.Sprint(qos), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { suspected(t, qos) })
		})
	}
}

// suspected has a message of a QoS end connections.
func suspected(t *testing.T, qos byte) {
	r := newRig(t, Config{})
	r.up(Server{})
	all := fmt.Sprintf("PUBLISH q1 #1%%[1]s t/0\nPUBLISH q%d #2%%[1]s t/1\nPUBLISH q1 #3%%[1]s t/2\n", qos)
	r.add(1)
	bad := r.add(qos)
	r.add(1)
	r.wantSent(fmt.Sprintf(all, ""))
	for range carefulAfter - 1 {
		r.down()
		r.up(Server{Present: true})
		r.wantSent(fmt.Sprintf(all, " dup"))
	}
	r.down()
	late := r.add(1)
	r.up(Server{Present: true})
	r.wantSent("PUBLISH q1 #1 dup t/0\n")
	r.ack(packet.TypePuback, 1, 0)
	r.want(0, pluginapi.ReceiptConfirmed)
	alone := fmt.Sprintf("PUBLISH q%d #2 dup t/1\n", qos)
	r.wantSent(alone)
	for range enough/evident - 1 {
		r.down()
		r.up(Server{Present: true})
		r.wantSent(alone)
		r.want(bad, 0)
	}
	r.down()
	if f := r.want(bad, pluginapi.ReceiptUnknown).Fault; f.Code != core.FaultUnavailable || f.Transient || len(f.Diagnostics) != 1 ||
		!strings.Contains(f.Message, "until "+time.Now().Add(outlawed).Format(time.TimeOnly)) {
		t.Errorf("%v", f)
	}
	r.up(Server{Present: true})
	r.wantSent("PUBLISH q1 #3 dup t/2\nPUBLISH q1 #4 t/3\n")
	r.ack(packet.TypePuback, 3, 0)
	r.ack(packet.TypePuback, 4, 0)
	r.want(late, pluginapi.ReceiptConfirmed)
	again := r.add(1, func(p *Post) { p.Message.Name = "t/1" })
	other := r.add(1, func(p *Post) { p.Message.Name, p.Message.Payload = "t/1", []byte("y") })
	r.want(again, pluginapi.ReceiptRefused)
	r.want(other, 0)
}

// What no connection took whole is refused, behind many: the server cannot have it.
// That goes for QoS 0 too.
func TestSuspectInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for qos := range byte(3) {
			r := newRig(t, Config{})
			bad := r.add(qos)
			for range carefulAfter + enough/doubtful {
				r.want(bad, 0)
				r.w = &wire{stuck: true}
				r.o.Up(r.w, Server{MaximumQoS: 2})
				r.w.write(4)
				r.down()
			}
			r.want(bad, pluginapi.ReceiptRefused)
		}
	})
}

// An answer, whatever else becomes of the connection, is an acquittal. So is a
// connection that ends before the server has seen the message.
func TestAcquittal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		i := r.add(2)
		end := func(n int) {
			for range n {
				r.down()
				r.up(Server{Present: true})
			}
		}
		end(carefulAfter + enough/evident - 1)
		r.ack(packet.TypePubrec, 1, 0)
		end(enough / doubtful) // careful still, and the first behind the answer
		r.want(i, 0)
		r.ack(packet.TypePubcomp, 1, 0)
		r.want(i, pluginapi.ReceiptConfirmed)
		r.w.stuck = true
		unseen := r.add(1)
		for range carefulAfter + enough {
			r.down()
			r.w = &wire{stuck: true}
			r.o.Up(r.w, Server{Present: true, MaximumQoS: 2})
		}
		r.want(unseen, 0)
	})
}

// PUBREL may be what a server ends connections at, seldom though: the server has
// taken the message.
func TestSuspectReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		i := r.add(2)
		r.ack(packet.TypePubrec, 1, 0)
		for range carefulAfter + enough/doubtful {
			r.want(i, 0)
			r.down()
			r.up(Server{Present: true})
		}
		r.want(i, pluginapi.ReceiptUnknown)
	})
}

// A bad line costs no message, whatever it does: what it may have done is evidence
// against none, or little.
func TestBadLine(t *testing.T) {
	for name, row := range map[string]struct {
		end  End
		n    int
		late bool
	}{
		"time-outs":        {end: EndOther, n: 10 * enough},
		"resets":           {end: EndReset, n: enough/doubtful - 1},
		"ends while quiet": {end: EndByServer, n: enough/doubtful - 1, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				r.up(Server{})
				i := r.add(2)
				for range carefulAfter + row.n {
					if row.late {
						time.Sleep(soon + 1)
					}
					r.endAs(row.end)
					r.up(Server{Present: true})
				}
				r.want(i, 0)
				r.ack(packet.TypePubrec, 1, 0)
				r.ack(packet.TypePubcomp, 1, 0)
				r.want(i, pluginapi.ReceiptConfirmed)
			})
		})
	}
}

// While the server completes other handshakes, one whose PUBREL it leaves is not
// suspected.
func TestSlowRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = enough + carefulAfter
		r := newRig(t, Config{})
		r.up(Server{})
		for id := range uint16(n + 1) {
			r.add(2)
			r.ack(packet.TypePubrec, id+1, 0)
		}
		for id := range uint16(n) {
			r.ack(packet.TypePubcomp, id+2, 0)
			r.down()
			r.up(Server{Present: true})
		}
		r.want(0, 0)
		r.down()
	})
}

// An application's message may be published again sooner than a copy, which a host
// tries for as long as it runs.
func TestOutlaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		bad := r.add(1)
		for range carefulAfter + enough/evident {
			r.down()
			r.up(Server{Present: true})
		}
		r.want(bad, pluginapi.ReceiptUnknown)
		again := func(isCopy bool) int {
			return r.add(1, func(p *Post) { p.Message.Name, p.Copy = "t/0", isCopy })
		}
		r.want(again(false), pluginapi.ReceiptRefused)
		time.Sleep(outlawed)
		r.want(again(false), 0)
		r.want(again(true), pluginapi.ReceiptRefused)
		time.Sleep(outlawedCopies - outlawed)
		r.want(again(true), 0)
		r.down()
		r.o.Fail(&core.Fault{Code: core.FaultUnavailable})
	})
}

// A server that never answers one message, and lives, does not keep the others
// waiting.
func TestSuspectThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		silent, next := r.add(1), r.add(1)
		for range carefulAfter {
			r.down()
			r.up(Server{Present: true})
		}
		r.wantSent("PUBLISH q1 #1 dup t/0\n")
		time.Sleep(trial - time.Nanosecond)
		r.wantSent("")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.wantSent("PUBLISH q1 #2 dup t/1\n")
		r.ack(packet.TypePuback, 2, 0)
		r.want(next, pluginapi.ReceiptConfirmed)
		r.want(silent, 0)
		r.down()
	})
}
