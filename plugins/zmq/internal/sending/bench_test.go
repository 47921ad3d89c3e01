// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// window is how many messages a benchmark has without a receipt, as a host does.
const window = 1024

// paced publishes b.N messages with a bounded number of receipts owed.
func paced(b *testing.B, size int, publish func(m *core.Message, t outq.Ticket)) {
	free := make(chan struct{}, window)
	for range window {
		free <- struct{}{}
	}
	t := outq.Ticket{Done: func(int, pluginapi.Receipt) { free <- struct{}{} }}
	m := &core.Message{Name: "orders", Payload: make([]byte, size)}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		<-free
		publish(m, t)
	}
	for range window {
		<-free
	}
}

func BenchmarkPush(b *testing.B) {
	for _, size := range []int{64, 512, 16 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			push := NewPush(Config{})
			l := listen(b, zmq4.Push, outq.Limits{}, push.Serve)
			go io.Copy(io.Discard, join(b, l.address, zmq4.Pull, "").conn.NetConn())
			zmqtest.Until(b, "it is attached", func() bool { return push.peers() == 1 })
			paced(b, size, push.Publish)
			push.Close(b.Context())
		})
	}
}

// BenchmarkPub publishes as fast as a host's window lets it; what is dropped for
// subscribers is reported as a share.
func BenchmarkPub(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		for _, size := range []int{512, 16 << 10} {
			b.Run(fmt.Sprintf("%d/%dB", n, size), func(b *testing.B) {
				memory := &outq.Memory{}
				pub := NewPub(Config{Memory: memory})
				l := listen(b, zmq4.Pub, outq.Limits{Memory: memory}, pub.Serve)
				for range n {
					go io.Copy(io.Discard, subscriberOf(b, pub, l.address, "").conn.NetConn())
				}
				paced(b, size, pub.Publish)
				dropped, _ := pub.Totals()
				b.ReportMetric(float64(dropped)/float64(n)/float64(b.N)*100, "dropped-%")
				pub.Close(b.Context())
			})
		}
	}
}
