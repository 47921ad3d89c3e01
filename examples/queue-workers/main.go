// SPDX-License-Identifier: Apache-2.0

// Command queue-workers shares jobs out over a ZeroMQ queue: a ventilator listens,
// workers dial it, and each job goes to one of them, in turn. main_test.go tests it.
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/queue-workers 2>log
//
// All hosts are in one process here. As services of their own they would know an
// address that does not change, such as tcp://ventilator:5557.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Job is what a worker is to do. Number 0 asks only who is there.
type Job struct{ Number int }

// report is what a worker says of a job that is done.
type report struct {
	worker   string
	job      int
	attempts uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, 12, "ann", "ben"); err != nil {
		log.Fatal(err)
	}
}

// run has jobs done by workers and prints who did how many.
func run(ctx context.Context, jobs int, workers ...string) error {
	h := host.New()
	bench := h.Endpoint("bench", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternQueue,
		Bind:    "tcp://127.0.0.1:0", // a free port
	})
	give := host.To[Job](h, bench.To("jobs"))
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()

	done := make(chan report)
	for _, name := range workers {
		w := host.New()
		work(w, name, bench.Addresses()[0], done)
		stop, err := serve(ctx, w)
		if err != nil {
			return err
		}
		defer stop()
	}
	// Jobs go to the workers that are connected: without this, those that were
	// there first would get more.
	if err := greet(ctx, give, done, len(workers)); err != nil {
		return err
	}
	return share(ctx, give, done, jobs, workers)
}

// work declares a worker that dials the ventilator.
func work(h *host.Host, name, address string, done chan<- report) {
	jobs := h.Endpoint("jobs", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternQueue, Connect: []string{address},
	})
	// A job that is tried again cannot go back: the ventilator only sends. So a
	// worker keeps a queue of its own for those.
	again := h.Endpoint("again", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternQueue, Bind: "tcp://127.0.0.1:0",
	})
	do := func(ctx context.Context, m *host.Message[Job]) error {
		if m.Value.Number == 7 && m.Attempt() == 1 {
			return errors.New("the tool broke") // a plain error is a retry
		}
		select {
		case done <- report{name, m.Value.Number, m.Attempt()}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	host.Handle(jobs.Subscription("jobs"), do, host.MaxAttempts(3), host.RetryTo(again.To("jobs")))
	host.Handle(again.Subscription("jobs"), do, host.MaxAttempts(3))
}

// greet returns when so many workers have answered.
func greet(ctx context.Context, give *host.Publisher[Job], done <-chan report, workers int) error {
	for there := map[string]bool{}; len(there) < workers; {
		if _, err := give.Publish(ctx, Job{}); err != nil {
			return err
		}
		r, err := next(ctx, done)
		if err != nil {
			return err
		}
		there[r.worker] = true
	}
	return nil
}

// share gives jobs to workers and prints what became of them.
func share(ctx context.Context, give *host.Publisher[Job], done <-chan report, jobs int, workers []string) error {
	for n := range jobs {
		if _, err := give.Publish(ctx, Job{Number: n + 1}); err != nil {
			return err
		}
	}
	did := map[string]int{}
	var again []report
	for range jobs {
		r, err := next(ctx, done)
		if err != nil {
			return err
		}
		did[r.worker]++
		if r.attempts > 1 {
			again = append(again, r)
		}
	}
	for _, name := range workers {
		fmt.Printf("%s did %d jobs\n", name, did[name])
	}
	for _, r := range again {
		fmt.Printf("job %d took %d attempts\n", r.job, r.attempts)
	}
	return nil
}

// next returns the next report.
func next(ctx context.Context, done <-chan report) (report, error) {
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
}

// serve runs a host until the returned function is called. It returns once the
// host serves.
func serve(ctx context.Context, h *host.Host) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !h.Ready() {
		select {
		case err := <-ended:
			cancel()
			return nil, err
		case <-look.C:
		}
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			log.Print(err)
		}
	}, nil
}
