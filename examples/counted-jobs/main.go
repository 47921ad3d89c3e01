// SPDX-License-Identifier: Apache-2.0

// Command counted-jobs has jobs done by three workers that share a subscription
// over Pulsar. A job that fails is tried by whoever gets it next: the broker counts
// the attempts, whichever worker makes them, and at the third one the job becomes a
// dead letter, which the office reads. main_test.go tests it.
//
// It needs a broker, such as a Pulsar standalone:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/counted-jobs pulsar://127.0.0.1:6650 2>log
//
// Office and workers are in one process here, each with a plugin of its own, as if
// they were on four machines.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/host"
	pulsar "github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// Job is what a worker is to do.
type Job struct{ Number int }

// Report is what a worker says of a job that is done.
type Report struct {
	Worker   string
	Job      int
	Attempts uint64
}

// The jobs at which something happens.
const (
	hard   = 5 // fails at its first two attempts
	broken = 8 // fails always
)

// The topics.
const (
	jobs = "counted-jobs"
	done = "counted-jobs-done"
	dead = "counted-jobs-dead"
)

func main() {
	url := "pulsar://127.0.0.1:6650"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, pulsar.URL(url), 12, "ann", "ben", "cid"); err != nil {
		log.Fatal(err)
	}
}

// run has jobs done by workers and prints what became of them.
func run(ctx context.Context, url pulsar.URL, n int, workers ...string) error {
	for _, name := range workers {
		h := host.New()
		work(h, url, name)
		stop, err := serve(ctx, h)
		if err != nil {
			return err
		}
		defer stop()
	}
	h := host.New()
	news := make(chan any)
	give := office(h, url, news)
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	for i := range n {
		if _, err := give.Publish(ctx, Job{Number: i + 1}); err != nil {
			return err
		}
	}
	reports, lost := map[int]Report{}, map[int]string{}
	for len(reports)+len(lost) < n { // a job may be reported twice: it is done at least once
		select {
		case x := <-news:
			switch x := x.(type) {
			case Report:
				reports[x.Job] = x
			case givenUp:
				lost[x.job] = x.why
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	show(reports, lost)
	return nil
}

// show prints what became of jobs.
func show(reports map[int]Report, lost map[int]string) {
	by := map[string]bool{}
	for _, r := range reports {
		by[r.Worker] = true
	}
	fmt.Printf("%d jobs are done, by %s\n", len(reports), strings.Join(slices.Sorted(maps.Keys(by)), ", "))
	fmt.Printf("job %d took %d attempts\n", hard, reports[hard].Attempts)
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		fmt.Printf("job %d is given up after %s\n", n, lost[n])
	}
}

// work declares a worker.
func work(h *host.Host, url pulsar.URL, name string) {
	broker := h.Endpoint("broker", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: url})
	todo := broker.Subscription(jobs, host.Options(pulsar.SubscribeOptions{
		Subscription: "workers", // whoever has this name shares the jobs
		// Hardly any is read ahead, so that none waits here while another worker is idle.
		ReceiverQueue: 1,
	}), host.Window(1, 0))
	reports := host.To[Report](h, broker.To(done))
	host.Handle(todo, func(ctx context.Context, m *host.Message[Job]) error {
		select {
		case <-time.After(20 * time.Millisecond): // it takes a while
		case <-ctx.Done():
			return ctx.Err()
		}
		if m.Value.Number == broken || m.Value.Number == hard && m.Attempt() < 3 {
			return errors.New("the valve is stuck") // a plain error is a retry
		}
		// The report leaves, and is with the broker, before the job is acked.
		return reports.PublishWith(m, Report{name, m.Value.Number, m.Attempt()})
	}, host.MaxAttempts(3), host.DeadLetterTo(broker.To(dead)), host.Publishes(reports))
}

// givenUp is a job that became a dead letter.
type givenUp struct {
	job int
	why string
}

// office declares what gives jobs out, reads reports, and reads the dead letters,
// as the subscription that has kept them.
func office(h *host.Host, url pulsar.URL, news chan<- any) *host.Publisher[Job] {
	tell := func(ctx context.Context, x any) error {
		select {
		case news <- x:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	broker := h.Endpoint("broker", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: url, DefaultSubscription: "office"})
	host.Handle(broker.Subscription(done), func(ctx context.Context, m *host.Message[Report]) error {
		return tell(ctx, m.Value)
	})
	letters := broker.Subscription(dead, host.Options(pulsar.SubscribeOptions{
		Subscription: "longshore-dead-letters", // the workers' plugin has made it: dead_letter_subscription
	}))
	host.Handle(letters, func(ctx context.Context, m *host.Message[Job]) error {
		why := fmt.Sprintf("%s attempts: %s", m.Header("x-longshore-attempts"), m.Header("x-longshore-reason"))
		return tell(ctx, givenUp{m.Value.Number, why})
	})
	return host.To[Job](h, broker.To(jobs))
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
