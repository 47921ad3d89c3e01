// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestWritesInOrder(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			near, far := connected(t, network)
			q := New(near, Limits{Messages: 1 << 20})
			r := newReceipts()
			var want []byte
			sizes := []int{0, 1, 255, 256, 5000, copyMost, copyMost + 1, 300_000, 2 << 20}
			n := 0
			for round := range 20 {
				for _, size := range sizes {
					m := &core.Message{
						Headers: core.Headers{{Name: "n", Value: []byte(strconv.Itoa(n))}},
						Payload: bytes.Repeat([]byte{byte(round)}, size),
					}
					want = appendMessage(want, m, "jobs", nil, true)
					if !q.Push(m, "jobs", nil, r.ticket(n)) {
						t.Fatalf("message %d: no room", n)
					}
					n++
				}
				if round == 3 {
					q.Push(text("x"), "jobs", [][]byte{{}}, r.ticket(n))
					want = appendMessage(want, text("x"), "jobs", [][]byte{{}}, true)
					n++
				}
				if round == 0 {
					go io.Copy(io.Discard, near)
				}
			}
			got := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(far)
				far.Close()
				got <- b
			}()
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				if b := <-got; !bytes.Equal(b, want) {
					t.Errorf("%d bytes came, not the %d expected", len(b), len(want))
				}
			}()
			q.Finish(ctx)
			r.await(t, n)
			if c := r.count(pluginapi.ReceiptConfirmed); c != n {
				t.Errorf("%d confirmed, want %d", c, n)
			}
			<-ctx.Done()
			if left := q.Abort(nil); len(left) != 0 {
				t.Errorf("%d unsent", len(left))
			}
		})
	}
}
