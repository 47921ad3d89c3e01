// SPDX-License-Identifier: Apache-2.0

package zmqtest_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestPython(t *testing.T) {
	p := zmqtest.Python(t, `
a = ctx.socket(zmq.PAIR)
a.bind(arg[0])
b = ctx.socket(zmq.PAIR)
b.connect(arg[0])
while True:
    a.send_string(hear())
    say("got", b.recv_string())
`, "inproc://a")
	p.Say("one")
	p.Say("two")
	p.Expect("got one", "got two")
	p.Silent("")
}
