// SPDX-License-Identifier: Apache-2.0

// Package source is the plugin's side of the benchmarks: one stream of messages
// behind the SDK, behind the bare link, and behind generated code.
package source

import (
	"encoding/json"
	"fmt"
	"runtime"
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
}

// distinct is how many payloads take turns, so that they are not all in the
// nearest cache.
const distinct = 64

// messages returns what takes turns under o.
func (o Options) messages() []core.Message {
	names := []core.Header{
		{Name: "content-type", Value: []byte("application/json")},
		{Name: "x-request-id", Value: []byte("4bf92f3577b34da6a3ce929d0e0e4736")},
		{Name: "partition-key", Value: []byte("customer-1234")},
	}
	ms := make([]core.Message, distinct)
	for i := range ms {
		ms[i] = core.Message{Name: "orders.created", Payload: make([]byte, o.Payload)}
		for h := range o.Headers {
			ms[i].Headers = append(ms[i].Headers, names[h%len(names)])
		}
	}
	return ms
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
