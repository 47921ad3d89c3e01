// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// envChild holds the configuration of a host in a process of its own.
const envChild = "LONGSHORE_CASES_CHILD"

// scriptHeader tells the child's handler what to do with a message: a step for
// each attempt, separated by semicolons; the last one stays. A step is a list of
// words: "until NAME" waits for the test to open the gate of that name, then
// follows what the handler says. Without the header the payload is the script.
const scriptHeader = "x-script"

// childConfig is what a child runs.
type childConfig struct {
	Endpoints     []childEndpoint
	Subscriptions []childSubscription
	Publish       *childPublish
	Drain         time.Duration
	Gates         string // folder of opened gates
	Crashes       int    // of a plugin within a minute that end the host; 0 = the default
}

type childEndpoint struct {
	Name, Plugin, Path string
	Settings           any
	Stdio              bool
}

type childSubscription struct {
	From, Name string
	Cap        int
	Dead       string // on the same endpoint, or NAME@ENDPOINT
	RetryTo    string // likewise
	Forward    string // likewise
	PanicDrops bool
	Tells      bool   // all are acked, whatever they say
	Waits      string // likewise, when the gate of that name is open
	Options    any
	Bodies     bool // payloads are made by body; they are acked and told by their names
	Workers    int  // 0 = the default
	ByKey      bool
	Takes      time.Duration // what a run that follows a script takes
}

// event is what a child tells on descriptor 3.
type event struct {
	Kind         string // ready, run, stored, end
	Subscription string
	Payload      string
	Attempt      uint64
	Error        string
}

// childMain runs a host until a signal, as a service's own main does.
func childMain(text string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	events := &teller{enc: json.NewEncoder(os.NewFile(3, "events"))}
	syscall.CloseOnExec(3)
	options := append(patient(),
		host.WithLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		host.WithDrainLimit(c.Drain), host.WithPublishLimit(time.Second),
	)
	if c.Crashes > 0 {
		options = append(options, host.WithBreaker(c.Crashes, time.Minute))
	}
	h := host.New(options...)
	byName := map[string]*host.Endpoint{}
	for _, e := range c.Endpoints {
		p := host.Plugin{Name: e.Plugin, Path: e.Path}
		if e.Stdio {
			p.Stdio = &host.Stdio{}
		}
		byName[e.Name] = h.Endpoint(e.Name, p, e.Settings)
	}
	for _, s := range c.Subscriptions {
		to := func(text string) core.Destination {
			name, endpoint, elsewhere := strings.Cut(text, "@")
			if !elsewhere {
				endpoint = s.From
			}
			return byName[endpoint].To(name)
		}
		var rules []host.Rule
		if s.Cap > 0 {
			rules = append(rules, host.MaxAttempts(s.Cap))
		}
		if s.Dead != "" {
			rules = append(rules, host.DeadLetterTo(to(s.Dead)))
		}
		if s.Forward != "" {
			rules = append(rules, host.Forward(to(s.Forward)))
		}
		if s.RetryTo != "" {
			rules = append(rules, host.RetryTo(to(s.RetryTo)))
		}
		if s.PanicDrops {
			rules = append(rules, host.OnPanic(host.AsDrop))
		}
		if s.Workers > 0 {
			rules = append(rules, host.Workers(s.Workers))
		}
		if s.ByKey {
			rules = append(rules, host.ByKey())
		}
		if s.Bodies {
			host.Handle(byName[s.From].Subscription(s.Name, host.Options(s.Options)), func(_ context.Context, m *host.Message[[]byte]) error {
				events.tell(event{Kind: "run", Subscription: s.Name, Payload: nameOf(m.Value), Attempt: m.Attempt()})
				return nil
			}, rules...)
			continue
		}
		host.Handle(byName[s.From].Subscription(s.Name, host.Options(s.Options)), func(ctx context.Context, m *host.Message[[]byte]) error {
			events.tell(event{Kind: "run", Subscription: s.Name, Payload: string(m.Value), Attempt: m.Attempt()})
			if s.Tells {
				return nil
			}
			if s.Waits != "" {
				return waited(ctx, c.Gates, s.Waits)
			}
			if s.Takes > 0 {
				time.Sleep(s.Takes)
			}
			return followed(ctx, c.Gates, m)
		}, rules...)
	}
	publish := c.Publish.prepare(h, byName)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		events.tellWhen(ctx, h.Ready)
		publish(ctx, events)
	}()
	err := host.RunUntilSignal(ctx, h)
	last := event{Kind: "end"}
	if err != nil {
		last.Error = err.Error()
	}
	events.tell(last)
	if err != nil {
		return 1
	}
	return 0
}

// followed does what the message's script says for this attempt.
func followed(ctx context.Context, gates string, m *host.Message[[]byte]) error {
	script := m.Header(scriptHeader)
	if script == "" {
		script = string(m.Value)
	}
	step := stepOf(script, m.Attempt())
	words := strings.Fields(step)
	if len(words) > 1 && words[0] == "until" {
		if err := waited(ctx, gates, words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "ack":
		return nil
	case "retry":
		return host.Retry(errors.New("told to"))
	case "later": // and how much
		after, err := time.ParseDuration(words[1])
		if err != nil {
			return fmt.Errorf("step %q: %w", step, err)
		}
		return host.RetryAfter(after, errors.New("told to"))
	case "drop":
		return host.Drop(errors.New("told to"))
	case "panic":
		panic("told to")
	case "exit": // and after how much
		after, err := time.ParseDuration(words[1])
		if err != nil {
			return fmt.Errorf("step %q: %w", step, err)
		}
		time.Sleep(after)
		os.Exit(3)
		return nil
	default:
		return fmt.Errorf("unknown step %q", step)
	}
}

// stepOf is the step of a script for an attempt.
func stepOf(script string, attempt uint64) string {
	steps := strings.Split(script, ";")
	return steps[min(int(max(attempt, 1)), len(steps))-1]
}

// waited waits until a gate is open.
func waited(ctx context.Context, gates, name string) error {
	for {
		if _, err := os.Stat(filepath.Join(gates, name)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// teller writes events.
type teller struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (t *teller) tell(e event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.enc.Encode(e)
}

// tellWhen tells that the host is ready.
func (t *teller) tellWhen(ctx context.Context, ready func() bool) {
	for !ready() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.tell(event{Kind: "ready"})
}

// scripted is the header that a message's script travels in.
func scripted(steps string) core.Headers {
	return core.Headers{{Name: scriptHeader, Value: []byte(steps)}}
}
