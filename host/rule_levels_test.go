// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

// at gives a rule the place p.
func at(p place, r Rule) Rule {
	r.place = p
	return r
}

func TestDefaultsStandBelowARegistration(t *testing.T) {
	fn := func(core.Message, uint64) (core.Destination, error) { return core.Destination{}, nil }
	q := core.Destination{Name: "q"}
	type want struct {
		attempts uint32
		timeout  time.Duration
		given    map[string]place
	}
	for name, c := range map[string]struct {
		host, endpoint, own []Rule
		want                want
	}{
		"none": {nil, nil, nil, want{0, 0, map[string]place{}}},
		"the host's": {
			[]Rule{at("h", MaxAttempts(3)), at("h", Timeout(time.Second))}, nil, nil,
			want{3, time.Second, map[string]place{"MaxAttempts": "h", "Timeout": "h"}},
		},
		"the endpoint's above it": {
			[]Rule{at("h", MaxAttempts(3)), at("h", Timeout(time.Second))}, []Rule{at("e", MaxAttempts(4))}, nil,
			want{4, time.Second, map[string]place{"MaxAttempts": "e", "Timeout": "h"}},
		},
		"its own above both": {
			[]Rule{at("h", MaxAttempts(3)), at("h", Timeout(time.Second))}, []Rule{at("e", MaxAttempts(4))},
			[]Rule{at("o", MaxAttempts(5)), at("o", Timeout(time.Minute))},
			want{5, time.Minute, map[string]place{"MaxAttempts": "o", "Timeout": "o"}},
		},
		"one that contradicts": {
			[]Rule{at("h", RetryToFunc(fn)), at("h", MaxAttempts(3))}, nil, []Rule{at("o", RetryTo(q))},
			want{3, 0, map[string]place{"MaxAttempts": "h", "RetryTo": "o"}},
		},
		"one that contradicts, the other way round": {
			[]Rule{at("h", RetryTo(q))}, []Rule{at("e", RetryToFunc(fn))}, nil,
			want{0, 0, map[string]place{"RetryToFunc": "e"}},
		},
		"none of them": {
			[]Rule{at("h", MaxAttempts(3))}, []Rule{at("e", Timeout(time.Second))}, []Rule{at("o", NoDefaults())},
			want{0, 0, map[string]place{"NoDefaults": "o"}},
		},
		"none of the host's": {
			[]Rule{at("h", MaxAttempts(3))}, []Rule{at("e", Timeout(time.Second)), at("e", NoDefaults())}, nil,
			want{0, time.Second, map[string]place{"Timeout": "e"}},
		},
		"one that is nothing to it": {
			[]Rule{at("h", ReplyTo(q)), at("h", MaxAttempts(3))}, nil, nil,
			want{3, 0, map[string]place{"MaxAttempts": "h"}},
		},
		"the zero rule": {[]Rule{{}}, []Rule{{}}, []Rule{{}}, want{0, 0, map[string]place{}}},
	} {
		t.Run(name, func(t *testing.T) {
			fits := func(r Rule) bool { return r.name != "ReplyTo" }
			set, found := resolve(c.own, fits, c.host, c.endpoint)
			if len(found) > 0 {
				t.Error(found)
			}
			got := want{set.maxAttempts, set.timeout, set.given}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			for name, p := range set.given {
				if set.defaulted[name] != (p != "o") {
					t.Errorf("%s at %s is a default: %t", name, p, set.defaulted[name])
				}
			}
		})
	}
}

// Error matches are asked from the registration out, middleware runs from the
// host in.
func TestDefaultsThatAddUp(t *testing.T) {
	var ran []string
	mark := func(name string) Rule {
		return Middleware(func(next Next) Next {
			return func(ctx context.Context, m Incoming) error {
				ran = append(ran, name)
				return next(ctx, m)
			}
		})
	}
	both := func(name string, rs ...Rule) []Rule { return append([]Rule{mark(name)}, rs...) }
	set, found := resolve(
		both("own", OnError(Is(errGone), AsAck), OnError(Is(errOther), AsAck)), nil,
		both("host", OnError(Is(errGone), AsDrop)), both("endpoint", OnError(Is(errGone), NeverRetry)),
	)
	if len(found) > 0 {
		t.Error(found)
	}
	var got []Reaction
	for _, c := range set.errors {
		got = append(got, c.reaction)
	}
	if diff := cmp.Diff([]Reaction{AsAck, AsAck, NeverRetry, AsDrop}, got); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	next, wrong := chain(set.middleware, func(context.Context, Incoming) error { return nil })
	if wrong != nil {
		t.Fatal(wrong)
	}
	_ = next(t.Context(), nil)
	if diff := cmp.Diff([]string{"host", "endpoint", "own"}, ran); diff != "" {
		t.Errorf("middleware (-want +got):\n%s", diff)
	}
}

// Defaults that make no sense are found once, where they were given; a
// registration is not told about them.
func TestDefaultsThatAreRefused(t *testing.T) {
	q := core.Destination{Name: "q"}
	fn := func(core.Message, uint64) (core.Destination, error) { return core.Destination{}, nil }
	h := New(WithDefaults(at("h1", MaxAttempts(0)), at("h2", NoDefaults()), at("h3", RetryTo(q)), at("h4", RetryToFunc(fn))))
	e := h.Endpoint("in", Plugin{Name: "mqtt"}, nil)
	for _, name := range []string{"a", "b", "c"} {
		Handle(e.Subscription(name), func(context.Context, *Message[[]byte]) error { return nil })
	}
	e.Defaults(at("e1", Timeout(time.Second)), at("e2", OnError(Is(errGone), AsAck)))
	e.Defaults(at("e3", Timeout(time.Second)), at("e4", OnError(Is(errGone), -77)))
	if len(h.found) > 0 {
		t.Errorf("at registration: %v", h.found)
	}
	want := [][]string{
		{"", "MaxAttempts", "h1"}, {"", "RetryTo", "h3", "h4"}, {"", "NoDefaults", "h2"},
		{"in", "Timeout", "e1", "e3"}, {"in", "OnError", "e4"}, {"in", "OnError"},
	}
	for range 2 { // it may be asked again
		var got [][]string
		for _, f := range h.declare() {
			if f.Subscription != "" || f.Message == "" || f.Fix == "" {
				t.Errorf("%+v", f)
			}
			places := f.Places
			if f.Message == "Is(gone) is given twice" {
				places = nil // those of the rules themselves
			}
			got = append(got, append([]string{f.Endpoint, f.Option}, places...))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
	}
}

// Forward as a default is a handler, and what is registered later counts as well.
func TestDefaultsAreTakenAtTheStart(t *testing.T) {
	h := New()
	e := h.Endpoint("in", Plugin{Name: "mqtt"}, nil)
	Handle[[]byte](e.Subscription("a"), nil)
	if found := h.declare(); len(found) != 1 || found[0].Option != "Handle" || found[0].Subscription != "a" {
		t.Errorf("found %v, want that a has no handler", found)
	}
	e.Defaults(Forward(core.Destination{Name: "q"}), MaxAttempts(3))
	if found := h.declare(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if got := e.subs[0].handled.rules.maxAttempts; got != 3 {
		t.Errorf("%d attempts", got)
	}
}

func TestDefaultsAfterRunPanic(t *testing.T) {
	h := New()
	e := h.Endpoint("in", Plugin{Name: "there-is-no-such-transport"}, nil)
	var refused *StartError
	if err := h.Run(t.Context()); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	e.Defaults(MaxAttempts(3))
}

// Middleware wraps single deliveries: where it cannot as a default, that is said.
func TestDefaultMiddlewareAndBatches(t *testing.T) {
	wrap := at("h", Middleware(func(n Next) Next { return n }))
	h := New(WithDefaults(wrap))
	e := h.Endpoint("in", Plugin{Name: "mqtt"}, nil)
	batch := func(context.Context, []*Message[[]byte]) []error { return nil }
	HandleBatch(e.Subscription("a"), 10, time.Second, batch)
	HandleBatch(e.Subscription("b"), 10, time.Second, batch, NoDefaults())
	Handle(e.Subscription("c"), func(context.Context, *Message[[]byte]) error { return nil })
	found := h.declare()
	if len(found) != 1 || !found[0].Warning || found[0].Subscription != "a" || found[0].Places[0] != "h" {
		t.Errorf("found %v, want a warning about a", found)
	}
	if n := len(e.subs[0].handled.rules.middleware); n != 0 {
		t.Errorf("a has %d functions of middleware", n)
	}
}
