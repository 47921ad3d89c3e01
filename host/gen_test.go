// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/rows"
	"github.com/longshore-go/longshore/pluginapi"
)

// genRow drives one row of the settlement table through a whole host on a
// transport in the test's process, and compares what its source saw and what the
// host logged with the row's cell.
type genRow struct {
	handle func(s *host.Subscription, ran func(payload string), rules ...host.Rule)
	rules  []host.Rule
	// payloads are the messages: the digit that each begins with is its element.
	payloads []string
	headers  core.Headers
	refuse   string        // publishes to this name are refused
	delay    time.Duration // what d is in the row
	window   int           // 0 = the default
	ran      []string      // "what ran" beside the cell: what the handler was given, in order
	anyOrder bool          // within a batch: retries that leave at one time may overtake each other
}

// numbers handles messages that are JSON numbers one by one.
func numbers(f func(ctx context.Context, m *host.Message[int]) error) func(*host.Subscription, func(string), ...host.Rule) {
	return func(s *host.Subscription, ran func(string), rules ...host.Rule) {
		host.Handle(s, func(ctx context.Context, m *host.Message[int]) error {
			ran(string(m.Payload()))
			return f(ctx, m)
		}, rules...)
	}
}

// batches handles them in batches of max.
func batches(max int, f func(ms []*host.Message[int]) []error) func(*host.Subscription, func(string), ...host.Rule) {
	return func(s *host.Subscription, ran func(string), rules ...host.Rule) {
		host.HandleBatch(s, max, time.Second, func(_ context.Context, ms []*host.Message[int]) []error {
			var ps []string
			for _, m := range ms {
				ps = append(ps, string(m.Payload()))
			}
			ran(strings.Join(ps, "+"))
			return f(ms)
		}, rules...)
	}
}

// cell returns a row's expected cell.
func cell(t *testing.T, id string) string {
	t.Helper()
	all, err := rows.Read("../core/testdata/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.ID == id {
			return r.Expected
		}
	}
	t.Fatalf("there is no row %s", id)
	return ""
}

// wanted reads a cell: the steps of each delivery, "1#2" = the second attempt of
// the first element.
func (r *genRow) wanted(cell string) map[string]string {
	want, all := make(map[string]string), ""
	for part := range strings.SplitSeq(cell, " / ") {
		label, steps, ok := strings.Cut(part, ": ")
		if !ok {
			label, steps = "each", part
		}
		if r.delay > 0 {
			steps = strings.ReplaceAll(steps, "+d(", "+"+r.delay.String()+"(")
		}
		steps = strings.ReplaceAll(steps, "NORUN; ", "") // what ran is compared by itself
		switch n, attempt := strconv.Atoi(label); {
		case attempt == nil:
			want["1#"+strconv.Itoa(n)] = steps
		case label == "each":
			for _, p := range r.payloads {
				want[p[:1]+"#1"] = steps
			}
		case label == "all" && steps == "ERROR(L-PAN)":
			all = steps + "; " // it names the first delivery of the batch
		case label == "all":
			want["all"] = steps
		default:
			want[strings.TrimPrefix(label, "e")+"#1"] = steps
		}
	}
	if first := r.payloads[0][:1] + "#1"; all != "" {
		want[first] = all + want[first]
	}
	return want
}

// trace collects the steps that were seen, by delivery.
type trace struct {
	mu    sync.Mutex
	began time.Time
	order []string // of the deliveries
	steps map[string][]string
}

// add notes a step of a delivery.
func (x *trace) add(key, step string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Contains(x.steps[key], "REQUEUE") {
		key += ", back" // it is another delivery
	}
	x.steps[key] = append(x.steps[key], step)
}

// keyOf names a delivery of a source that does not count.
func keyOf(m core.Message) string {
	n := 0
	for _, h := range m.Headers {
		if h.Name == "x-ruststream-retry-count" {
			n, _ = strconv.Atoi(string(h.Value))
		}
	}
	return fmt.Sprintf("%s#%d", m.Payload[:1], n+1)
}

// watch has x see what goes over the transport.
func (x *trace) watch(q *queues, refuse string) {
	q.delivered = func(m core.Message) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.order = append(x.order, keyOf(m))
	}
	q.settled = func(m core.Message, v pluginapi.Verdict) {
		x.add(keyOf(m), strings.ToUpper(v.Kind.String()))
	}
	q.published = func(o pluginapi.Outgoing) *pluginapi.Receipt {
		if o.Message.Name == refuse {
			return refuseFor(refuse)(o)
		}
		if o.Purpose != pluginapi.PurposeRetry && o.Purpose != pluginapi.PurposeDeadLetter {
			return nil
		}
		key := keyOf(o.Message)
		e, attempt, _ := strings.Cut(key, "#")
		n, _ := strconv.Atoi(attempt)
		name, after := strings.Replace(o.Message.Name, "orders", "own", 1), ""
		if wait := time.Since(x.began); wait > 0 {
			after = "+" + wait.String()
		}
		x.add(fmt.Sprintf("%s#%d", e, n-1), fmt.Sprintf("PUBLISH%s(%s,%d)", after, name, n-1))
		return nil
	}
}

// released notes a release of what was delivered and has no verdict: a transport is
// told of none.
func (x *trace) released(q *queues) {
	for _, p := range q.left("orders") {
		if key := p[:1] + "#1"; !strings.Contains(strings.Join(x.steps[key], " "), "ACK") { // else it is a copy
			x.add(key, "RELEASE")
		}
	}
}

// Enabled, Handle, WithAttrs and WithGroup make a lineHandler a slog.Handler that
// notes lines with a code.
type lineHandler struct {
	x     *trace
	attrs []slog.Attr
}

func (h lineHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h lineHandler) WithGroup(string) slog.Handler            { return h }
func (h lineHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return lineHandler{h.x, append(h.attrs[:len(h.attrs):len(h.attrs)], as...)}
}

func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	code, key := "", "all"
	look := func(a slog.Attr) bool {
		switch a.Key {
		case "code":
			code = a.Value.String()
		case "delivery":
			if n, err := strconv.Atoi(a.Value.String()); err == nil {
				h.x.mu.Lock()
				key = h.x.order[n-1]
				h.x.mu.Unlock()
			}
		}
		return true
	}
	for _, a := range h.attrs {
		look(a)
	}
	r.Attrs(look)
	switch code {
	case "", core.LogDeclared.String(), core.LogEnd.String(), core.LogCheck.String():
		return nil
	}
	h.x.add(key, fmt.Sprintf("%v(%s)", r.Level, code))
	return nil
}

// run drives the row.
func (r *genRow) run(t *testing.T, id string) {
	t.Helper()
	x := &trace{steps: make(map[string][]string)}
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		x.watch(q, r.refuse)
		h := host.New(host.WithLogger(slog.New(lineHandler{x: x})))
		var ran []string
		r.handle(attach(h, "in", q).Subscription("orders", host.Window(r.window, 0)), func(p string) {
			if r.anyOrder {
				p = strings.Join(slices.Sorted(slices.Values(strings.Split(p, "+"))), "+")
			}
			ran = append(ran, p)
		}, r.rules...)
		for _, p := range r.payloads {
			q.take(core.Message{Name: "orders", Payload: []byte(p), Headers: r.headers}, nil)
		}
		x.began = time.Now()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Run(ctx) }()
		synctest.Wait()
		time.Sleep(time.Minute) // what waits is due by then
		stop()
		var e *host.HandlerError
		err := <-done
		x.released(q)
		switch {
		case errors.As(err, &e):
			x.add("1#1", "STOP(the failure)")
		case err != nil:
			t.Errorf("the host ends with %v", err)
		}
		if diff := cmp.Diff(r.ran, ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
	})
	got := make(map[string]string)
	for key, steps := range x.steps {
		got[key] = strings.Join(steps, "; ")
	}
	want := r.wanted(cell(t, id))
	for key := range got {
		if want[key] == "" && !strings.HasSuffix(key, "#1") { // copies that came back are the next row's
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s (-want +got):\n%s", id, cell(t, id), diff)
	}
}
