// SPDX-License-Identifier: Apache-2.0

// Command shared-workers has jobs done by two processes that share a topic over
// MQTT. One of them is killed at a job: it is started again, and the broker gives
// it that job once more. main_test.go tests it.
//
// It needs a broker, such as Debian's mosquitto:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/shared-workers mqtt://127.0.0.1:1883 2>log
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

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Job is what a worker is to do.
type Job struct{ Number int }

// Report is what a worker says of a job that is done.
type Report struct {
	Worker   string
	Job      int
	Attempts uint64
	Again    bool // the broker has sent it before
}

// The jobs at which something happens.
const (
	deadly = 5 // kills the first worker that gets it
	hard   = 7 // fails at its first attempt
)

func main() {
	url := "mqtt://127.0.0.1:1883"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 2 { // a process that the crew has started
		err = worker(ctx, mqtt.URL(url), os.Args[2])
	} else {
		err = run(ctx, mqtt.URL(url), 12, "ann", "ben")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run has jobs done by workers and prints what became of them.
func run(ctx context.Context, url mqtt.URL, jobs int, workers ...string) error {
	h := host.New()
	done := make(chan Report)
	give := office(h, url, done)
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	c := newCrew(ctx, url)
	defer c.stop()
	for _, name := range workers {
		if err := c.hire(name); err != nil {
			return err
		}
	}
	for n := range jobs {
		if _, err := give.Publish(ctx, Job{Number: n + 1}); err != nil {
			return err
		}
	}
	reports := map[int]Report{}
	for len(reports) < jobs { // a job may be reported twice: it is done at least once
		select {
		case r := <-done:
			reports[r.Job] = r
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	show(reports)
	return nil
}

// show prints what became of jobs.
func show(reports map[int]Report) {
	by := map[string]bool{}
	for _, r := range reports {
		by[r.Worker] = true
	}
	fmt.Printf("%d jobs are done, by %s\n", len(reports), strings.Join(slices.Sorted(maps.Keys(by)), " and "))
	if reports[deadly].Again {
		fmt.Printf("job %d came again after it had killed its worker\n", deadly)
	}
	fmt.Printf("job %d took %d attempts\n", hard, reports[hard].Attempts)
}

// office declares what gives jobs out and reads reports.
func office(h *host.Host, url mqtt.URL, done chan<- Report) *host.Publisher[Job] {
	broker := h.Endpoint("broker", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "shared-workers-office",
	})
	host.Handle(broker.Subscription("jobs/done"), func(ctx context.Context, m *host.Message[Report]) error {
		select {
		case done <- m.Value:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, host.MaxAttempts(3))
	return host.To[Job](h, broker.To("jobs"))
}

// worker is a process that does jobs until it is told to stop.
func worker(ctx context.Context, url mqtt.URL, name string) error {
	h := host.New()
	work(h, url, name, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	fmt.Println(ready)
	<-ctx.Done()
	stop()
	return nil
}

// work declares a worker.
func work(h *host.Host, url mqtt.URL, name string, die func()) {
	broker := h.Endpoint("broker", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "shared-workers-" + name,
		// The broker keeps for a minute what this worker has not acked, and gives it
		// to the next process under the same client id.
		CleanStart:    new(false),
		SessionExpiry: core.Duration(time.Minute),
	})
	jobs := broker.Subscription("jobs", host.Options(mqtt.SubscribeOptions{Group: "workers"}))
	done := host.To[Report](h, broker.To("jobs/done"))
	host.Handle(jobs, func(_ context.Context, m *host.Message[Job]) error {
		again := m.Header("mqtt-redelivered") == "true"
		switch {
		case m.Value.Number == deadly && !again:
			die()
		case m.Value.Number == hard && m.Attempt() == 1:
			return errors.New("the tool broke") // a plain error is a retry
		}
		// The report leaves, and is with the broker, before the job is acked.
		return done.PublishWith(m, Report{name, m.Value.Number, m.Attempt(), again})
	}, host.MaxAttempts(3), host.Publishes(done))
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
