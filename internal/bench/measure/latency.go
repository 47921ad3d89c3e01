// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// Percentiles are of the time from the source's stamp to the host, one way.
type Percentiles struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// usual is the message of the latency rows.
var usual = Row{Frame: 1, Window: 1024, Payload: 512, Headers: 3}

// messages are those of a row.
func (r Row) messages() []core.Message {
	return source.Options{Payload: r.Payload, Headers: r.Headers}.Messages()
}

// Latency measures a thousand messages a second for a time.
func Latency(ctx context.Context, s *Subject, d time.Duration) (Percentiles, error) {
	if s.Name == Socket {
		return socketLatency(ctx, s, d)
	}
	ages := make([]time.Duration, 0, 1+d/time.Millisecond)
	o := source.Options{Frame: 1, Payload: usual.Payload, Headers: usual.Headers, Every: core.Duration(time.Millisecond)}
	r, err := registration(o)
	if err != nil {
		return Percentiles{}, err
	}
	f, err := openFlow(ctx, s, r, usual, func(f *flow) { f.seen = func(age time.Duration) { ages = append(ages, age) } })
	if err != nil {
		return Percentiles{}, err
	}
	err = sleep(ctx, d)
	if endErr := f.end(); err == nil {
		err = endErr
	}
	return percentiles(ages), err
}

func socketLatency(ctx context.Context, s *Subject, d time.Duration) (Percentiles, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", s.path)
	if err != nil {
		return Percentiles{}, err
	}
	defer func() { _ = c.Close() }() // nothing is left to be read or written
	b := make([]byte, source.SocketSize)
	ages := make([]time.Duration, 0, 1+d/time.Millisecond)
	for until := time.Now().Add(d); time.Now().Before(until); {
		age, err := source.ReadStamp(c, b)
		if err != nil {
			return Percentiles{}, err
		}
		ages = append(ages, age)
	}
	return percentiles(ages), nil
}

func percentiles(ages []time.Duration) Percentiles {
	if len(ages) == 0 {
		return Percentiles{}
	}
	slices.Sort(ages)
	return Percentiles{P50: ages[len(ages)/2], P99: ages[len(ages)*99/100]}
}
