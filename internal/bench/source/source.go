// SPDX-License-Identifier: Apache-2.0

// Package source is the plugin's side of the benchmarks: one stream of messages
// behind the SDK, behind the bare link, and behind generated code.
package source

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Options say what one subscription delivers.
type Options struct {
	Frame   int           `json:"frame" doc:"messages a frame" min:"1" max:"256" default:"256"`
	Payload int           `json:"payload" doc:"bytes of payload" min:"0" default:"512"`
	Headers int           `json:"headers" doc:"headers a message" min:"0" default:"3"`
	Every   core.Duration `json:"every" doc:"time between frames, 0s = as fast as it goes" default:"0s"`
	JSON    bool          `json:"json" doc:"payloads are orders as JSON" default:"false"`
	Keys    int           `json:"keys" doc:"partition keys that take turns, 0 = one" min:"0" max:"64" default:"0"`
	Copies  bool          `json:"copies" doc:"nothing is requeued or counted, so that a retry is a copy" default:"false"`
	Idle    bool          `json:"idle" doc:"nothing is delivered" default:"false"`
}

// Order is what payloads hold under Options.JSON.
type Order struct {
	ID       string  `json:"id"`
	Customer int     `json:"customer"`
	Amount   float64 `json:"amount"`
	Paid     bool    `json:"paid"`
	Note     string  `json:"note"` // fills the payload up
}

// distinct is how many payloads take turns, so that they are not all in the
// nearest cache.
const distinct = 64

// Messages returns what takes turns under o.
func (o Options) Messages() []core.Message {
	ms := make([]core.Message, distinct)
	for i := range ms {
		customer := 1234 + i%max(o.Keys, 1)
		headers := []core.Header{
			{Name: "content-type", Value: []byte("application/json")},
			{Name: "x-request-id", Value: []byte("4bf92f3577b34da6a3ce929d0e0e4736")},
			{Name: "partition-key", Value: fmt.Appendf(nil, "customer-%d", customer)},
		}
		ms[i] = core.Message{Name: "orders.created", Payload: make([]byte, o.Payload)}
		if o.JSON {
			ms[i].Payload = order(customer, o.Payload)
		}
		for h := range o.Headers {
			ms[i].Headers = append(ms[i].Headers, headers[h%len(headers)])
		}
	}
	return ms
}

// Payloads returns the payloads that take turns under o.
func (o Options) Payloads() [][]byte {
	var ps [][]byte
	for _, m := range o.Messages() {
		ps = append(ps, m.Payload)
	}
	return ps
}

// order is a customer's Order in size bytes, or a little more where that is too
// small for one.
func order(customer, size int) []byte {
	const form = `{"id":"order-%d","customer":%d,"amount":1499.95,"paid":true,"note":"%s"}`
	b := fmt.Appendf(nil, form, customer, customer, "")
	return fmt.Appendf(nil, form, customer, customer, strings.Repeat("x", max(size-len(b), 0)))
}

// Usage is what a process has used since it started.
type Usage struct {
	CPU    time.Duration // user and system
	Allocs uint64        // heap objects
}

// Since returns what was used after before.
func (u Usage) Since(before Usage) Usage {
	return Usage{CPU: u.CPU - before.CPU, Allocs: u.Allocs - before.Allocs}
}

// Used returns this process's usage.
func Used() (Usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("read usage: %w", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{
		CPU:    time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Allocs: m.Mallocs,
	}, nil
}

// usedMessage is the reply to any request: the plugin's usage as JSON.
func usedMessage() (core.Message, error) {
	u, err := Used()
	if err != nil {
		return core.Message{}, err
	}
	b, err := json.Marshal(u)
	return core.Message{Payload: b}, err
}
