// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore/host"
)

// inFlight is how many publishes of a child wait for their receipts.
const inFlight = 16

// childPublish is what a child publishes in order once it is ready. It tells
// each as "stored" when it has the receipt.
type childPublish struct {
	To, Name string
	Prefix   string // of the names of the bodies
	Count    int
	Size     int
	Routed   bool // the first one is published until somebody gets it
}

// prepare makes the publisher before the host runs.
func (p *childPublish) prepare(h *host.Host, endpoints map[string]*host.Endpoint) func(context.Context, *teller) {
	if p == nil {
		return func(context.Context, *teller) {}
	}
	to := host.To[[]byte](h, endpoints[p.To].To(p.Name))
	return func(ctx context.Context, events *teller) {
		sent := make(chan func(), inFlight)
		go func() {
			defer close(sent)
			for i := 0; i < p.Count && ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s-%d", p.Prefix, i)
				pending, err := to.PublishAsync(ctx, body(name, p.Size))
				for p.Routed && i == 0 && err == nil && unrouted(ctx, pending) {
					pending, err = to.PublishAsync(ctx, body(name, p.Size))
				}
				sent <- func() {
					if err == nil {
						_, err = pending.Receipt(ctx)
					}
					told := event{Kind: "stored", Payload: name}
					if err != nil {
						told.Error = err.Error()
					}
					events.tell(told)
				}
			}
		}()
		for tell := range sent {
			tell()
		}
	}
}

// unrouted reports that a message has gone to nobody, after a while that it is not
// published again in.
func unrouted(ctx context.Context, pending *host.Pending) bool {
	r, err := pending.Receipt(ctx)
	if err != nil || !r.Unrouted {
		return false
	}
	<-time.After(pollMost)
	return true
}

// body is a payload of a size that can be told whole from spoiled: its name, and
// bytes that follow from it.
func body(name string, size int) []byte {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	bytes := rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%032x", sum.Sum64())))
	out := append(make([]byte, 0, size), name+"\n"...)
	rest := out[len(out):size]
	_, _ = bytes.Read(rest)
	return out[:size]
}

// nameOf returns the name of a body, or that it is none.
func nameOf(payload []byte) string {
	name, _, ok := bytes.Cut(payload, []byte("\n"))
	if !ok || !bytes.Equal(payload, body(string(name), len(payload))) {
		return fmt.Sprintf("spoiled %.50q of %d bytes", payload, len(payload))
	}
	return string(name)
}
