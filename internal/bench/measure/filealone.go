// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
)

// alone is the transport of stream files in this process, called as the SDK
// calls it.
type alone struct{ conn pluginapi.Conn }

// openAlone connects to a path.
func openAlone(ctx context.Context, path, fsync string) (*alone, error) {
	settings, err := fileSettings(path, fsync)
	if err != nil {
		return nil, err
	}
	e, err := file.New().Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(settings), Endpoint: "bench", Generation: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	c, err := e.Connect(ctx, nil)
	return &alone{conn: c}, err
}

func (a *alone) close(ctx context.Context) error {
	_, err := a.conn.Close(ctx)
	return err
}

// withAlone connects for one measurement.
func withAlone[T any](ctx context.Context, path, fsync string, do func(*alone) (T, error)) (t T, err error) {
	a, err := openAlone(ctx, path, fsync)
	if err != nil {
		return t, err
	}
	t, err = do(a)
	return t, errors.Join(err, a.close(ctx))
}

// fill publishes n messages.
func (a *alone) fill(ctx context.Context, messages []core.Message, n int) error {
	var failed atomic.Pointer[core.Fault]
	batch := outgoing(messages, frame.MaxItems)
	for ; n > 0; n -= len(batch) {
		batch = batch[:min(n, len(batch))]
		a.conn.Publish(ctx, batch, func(_ int, r pluginapi.Receipt) {
			if r.Status != pluginapi.ReceiptConfirmed {
				failed.Store(r.Fault)
			}
		})
	}
	if f := failed.Load(); f != nil {
		return f
	}
	return nil
}

// outgoing are n messages to publish.
func outgoing(messages []core.Message, n int) []pluginapi.Outgoing {
	out := make([]pluginapi.Outgoing, n)
	for i := range out {
		out[i] = pluginapi.Outgoing{Message: messages[i%len(messages)], Purpose: pluginapi.PurposeApplication}
	}
	return out
}

// here is this process alone.
var here = &Subject{Name: InProc}

// write measures publishing.
func (a *alone) write(ctx context.Context, row FileRow, d time.Duration) (Sample, error) {
	var receipts atomic.Uint64
	stop, over := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- a.publishUntil(stop, ctx, row, &receipts) }()
	err := sleep(ctx, d/4)
	var s Sample
	if err == nil {
		s, err = here.during(ctx, &receipts, d)
	}
	over()
	return s, errors.Join(err, <-done)
}

// publishUntil publishes until stop ends, with as many messages open as the row
// says.
func (a *alone) publishUntil(stop, ctx context.Context, row FileRow, receipts *atomic.Uint64) error {
	open := max(1, min(row.Open, openBytes/max(1, row.Payload)))
	batch := outgoing(row.options().Messages(), min(open, frame.MaxItems))
	room := make(chan struct{}, open)
	var failed atomic.Pointer[core.Fault]
	for stop.Err() == nil && failed.Load() == nil {
		for range batch {
			room <- struct{}{}
		}
		a.conn.Publish(ctx, batch, func(_ int, r pluginapi.Receipt) {
			if r.Status != pluginapi.ReceiptConfirmed {
				failed.Store(r.Fault)
			}
			receipts.Add(1)
			<-room
		})
	}
	for range open { // the last receipts
		room <- struct{}{}
	}
	if f := failed.Load(); f != nil {
		return f
	}
	return nil
}

// subscribe opens a subscription.
func (a *alone) subscribe(ctx context.Context, replay bool, group string) (pluginapi.Subscription, error) {
	r, err := fileReading(replay, group)
	if err != nil {
		return nil, err
	}
	return a.conn.Subscribe(ctx, pluginapi.Registration{Name: r.GetName(), Options: pluginapi.NewOptions(r.GetOptions())})
}

// read takes what comes until it has n messages or ctx ends.
func read(ctx context.Context, sub pluginapi.Subscription, ack bool, n int, seen func([]pluginapi.Delivery)) error {
	var verdicts []pluginapi.Verdict
	for total := 0; total < n; {
		b, err := sub.Receive(ctx, pluginapi.Room{Messages: frame.MaxItems, Bytes: openBytes})
		seen(b.Deliveries)
		total += len(b.Deliveries)
		if ack {
			verdicts = verdicts[:0]
			for i := range b.Deliveries {
				verdicts = append(verdicts, pluginapi.Verdict{Handle: b.Deliveries[i].Handle, Kind: core.VerdictAck})
			}
			sub.Settle(ctx, verdicts)
		}
		if err != nil {
			return unexpected(ctx, err)
		}
	}
	return nil
}

// unexpected is err, unless it is the end of what is read or of ctx.
func unexpected(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// replay measures as replayFile.
func (a *alone) replay(ctx context.Context, row FileRow, group string, n uint64) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	sub, err := a.subscribe(ctx, true, group)
	if err != nil {
		return Sample{}, err
	}
	var count atomic.Uint64
	add := func(ds []pluginapi.Delivery) { count.Add(uint64(len(ds))) }
	if err = read(ctx, sub, row.Group, int(n/warmPart), add); err != nil {
		return Sample{}, errors.Join(err, sub.Close(ctx))
	}
	s, err := here.between(ctx, &count, func() error { return read(ctx, sub, row.Group, int(n-count.Load()), add) })
	return s, errors.Join(err, ctx.Err(), sub.Close(ctx))
}

// tail measures as tailFile.
func (a *alone) tail(ctx context.Context, row FileRow, d time.Duration) (Sample, error) {
	var count, receipts atomic.Uint64
	return beside(ctx, a, func(ds []pluginapi.Delivery) { count.Add(uint64(len(ds))) },
		func(stop context.Context) error { return a.publishUntil(stop, ctx, row, &receipts) },
		func() (Sample, error) {
			if err := sleep(ctx, warmUp); err != nil {
				return Sample{}, err
			}
			return here.during(ctx, &count, d)
		})
}

// latency measures as tailLatency.
func (a *alone) latency(ctx context.Context, d time.Duration) (Percentiles, error) {
	var ages []time.Duration
	_, err := beside(ctx, a, func(ds []pluginapi.Delivery) {
		for i := range ds {
			ages = append(ages, stampAge(ds[i].Message.Payload))
		}
	}, func(stop context.Context) error { return a.paced(stop, ctx) },
		func() (struct{}, error) { return struct{}{}, sleep(ctx, d) })
	return percentiles(ages), err
}

// paced publishes a stamped message every millisecond until stop ends.
func (a *alone) paced(stop, ctx context.Context) error {
	messages := usual.messages()
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-stop.Done():
			return nil
		}
		stamp(messages[0].Payload)
		if err := a.fill(ctx, messages, 1); err != nil {
			return err
		}
	}
}

// beside reads the tail of the file and runs write while measure measures.
func beside[T any](ctx context.Context, a *alone, seen func([]pluginapi.Delivery), write func(stop context.Context) error,
	measure func() (T, error)) (T, error) {
	sub, err := a.subscribe(ctx, false, "")
	if err != nil {
		var none T
		return none, err
	}
	stop, over := context.WithCancel(ctx)
	errs := make(chan error, 2)
	go func() { errs <- read(stop, sub, false, 1<<62, seen) }()
	go func() { errs <- write(stop) }()
	t, err := measure()
	over()
	return t, errors.Join(err, <-errs, <-errs, sub.Close(ctx))
}
