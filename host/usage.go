// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// usage is all that the host wants of one endpoint.
type usage struct {
	request *transportpb.InspectRequest
	users   [][]user // of the request's destinations
}

// user is who declared a destination.
type user struct {
	sub    *subscribed // of any endpoint; nil = a publisher
	option string      // the rule, or "To"
	place  place
}

// at returns a finding about the user with nothing but its places. a is the
// destination's endpoint.
func (u user) at(a *attached) Finding {
	f := a.at()
	if u.sub != nil {
		f = u.sub.at()
	}
	f.Option, f.Places = u.option, places(u.place)
	return f
}

// usages fills in what each endpoint is used for, and returns what cannot be
// used at all.
func (r *run) usages() []Finding {
	for _, a := range r.endpoints {
		a.usage.request = &transportpb.InspectRequest{}
		for i, s := range a.subs {
			s.id = uint32(i)
			a.usage.request.Registrations = append(a.usage.request.Registrations, s.registration())
		}
	}
	var found []Finding
	want := func(u user, to core.Destination, p transportpb.Purpose) {
		f := r.want(u, to, p)
		if f != nil && (u.sub == nil || !spokenOf(found, *f, u.sub.rules().defaulted[u.option])) {
			found = append(found, *f)
		}
	}
	for _, s := range r.subs {
		rules := s.rules()
		if on := rules.replyOn; on != nil && on.host != r.host {
			f := s.at()
			f.Option, f.Message, f.Fix = "ReplyOn", fmt.Sprintf("endpoint %s belongs to another host", on.name), "give an endpoint of this one"
			found = append(found, f)
		}
		if d := s.resolve(rules.deadLetter); !d.IsZero() {
			want(s.user("DeadLetterTo"), d, transportpb.Purpose_PURPOSE_DEAD_LETTER)
		}
		if d := s.resolve(rules.retryTo); !d.IsZero() {
			want(s.user("RetryTo"), d, transportpb.Purpose_PURPOSE_RETRY)
		}
		for _, d := range rules.publishes {
			want(s.user("Publishes"), s.resolve(d), transportpb.Purpose_PURPOSE_APPLICATION)
		}
		if d := s.resolve(rules.forward); !d.IsZero() {
			want(s.user("Forward"), d, transportpb.Purpose_PURPOSE_APPLICATION)
		}
		if d := s.resolve(rules.replyTo); !d.IsZero() && s.sub.handled.as == "HandleReply" {
			want(s.user("ReplyTo"), d, transportpb.Purpose_PURPOSE_REPLY)
		}
	}
	for _, p := range r.host.publishers {
		want(user{option: "To", place: p.place}, p.to, transportpb.Purpose_PURPOSE_APPLICATION)
	}
	return found
}

// resolve gives a destination without an endpoint the subscription's own.
func (s *subscribed) resolve(d core.Destination) core.Destination {
	if d.Name != "" && d.Endpoint == "" {
		d.Endpoint = s.on.endpoint.name
	}
	return d
}

// registration is the subscription as its plugin sees it.
func (s *subscribed) registration() *transportpb.Registration {
	rules := s.rules()
	return &transportpb.Registration{
		Id:         s.id,
		Name:       s.sub.name,
		Options:    s.options,
		Attempts:   rules.maxAttempts,
		DeadLetter: s.asSeen(rules.deadLetter),
		RetryTo:    s.asSeen(rules.retryTo),
		Backoff:    int64(rules.backoff.longest),
		Elapsed:    int64(rules.maxElapsed),
		Batch:      s.sub.handled.as == "HandleBatch",
		Decoded:    s.sub.handled.decoded,
	}
}

// asSeen writes a destination as "name", or "name@endpoint" on another
// endpoint.
func (s *subscribed) asSeen(d core.Destination) string {
	if d.Endpoint == "" || d.Endpoint == s.on.endpoint.name {
		return d.Name
	}
	return d.String()
}

// user is the subscription as the user of what a rule names.
func (s *subscribed) user(rule string) user {
	return user{sub: s, option: rule, place: s.placeOf(rule)}
}

// want adds a destination to the usage of its endpoint.
func (r *run) want(u user, to core.Destination, p transportpb.Purpose) *Finding {
	if to.Name == "" {
		if u.sub != nil {
			return nil // found with the rule itself
		}
		return &Finding{
			Option: u.option, Places: places(u.place),
			Message: "a publisher names no destination", Fix: "give it one, as in endpoint.To(\"name\")",
		}
	}
	a := r.byName[to.Endpoint]
	if a == nil {
		f := Finding{Option: u.option, Places: places(u.place)}
		if u.sub != nil {
			f.Endpoint, f.Subscription = u.sub.on.endpoint.name, u.sub.sub.name
		}
		f.Message = fmt.Sprintf("the endpoint of %v is not attached", to)
		f.Fix = fmt.Sprintf("attach an endpoint named %q, or name another", to.Endpoint)
		if to.Endpoint == "" {
			f.Message, f.Fix = fmt.Sprintf("%v names no endpoint", to), "make it with endpoint.To"
		}
		return &f
	}
	i := slices.IndexFunc(a.usage.request.Destinations, func(t *transportpb.Target) bool {
		return t.GetName() == to.Name && t.GetPurpose() == p
	})
	if i < 0 {
		i = len(a.usage.users)
		a.usage.request.Destinations = append(a.usage.request.Destinations, &transportpb.Target{Name: to.Name, Purpose: p})
		a.usage.users = append(a.usage.users, nil)
	}
	a.usage.users[i] = append(a.usage.users[i], u)
	if u.sub != nil && u.sub.on == a {
		t := a.usage.request.Destinations[i]
		t.For = append(t.For, u.sub.id)
	}
	return nil
}

// inspect asks the plugin about its whole usage.
func (a *attached) inspect(ctx context.Context, l link.Link) (*transportpb.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, a.run.opts.startLimit)
	defer cancel()
	r, err := l.Inspect(ctx, a.usage.request)
	if err != nil {
		return nil, err
	}
	if n, want := len(r.GetRegistrations()), len(a.usage.request.Registrations); n != want {
		return nil, &protocolError{fmt.Sprintf("Inspect answered for %d registrations of %d", n, want)}
	}
	if n, want := len(r.GetDestinations()), len(a.usage.request.Destinations); n != want {
		return nil, &protocolError{fmt.Sprintf("Inspect answered for %d destinations of %d", n, want)}
	}
	for _, t := range r.GetDestinations() {
		for _, id := range append(slices.Clone(t.GetReturnsTo()), t.GetExactly()...) {
			if int(id) >= len(a.subs) {
				return nil, &protocolError{fmt.Sprintf("Inspect names registration %d of %d", id, len(a.subs))}
			}
		}
	}
	return r, nil
}

// target returns what the plugin said of a destination; nil where it was not
// asked.
func (r *run) target(to core.Destination, p transportpb.Purpose) *transportpb.TargetReport {
	a := r.byName[to.Endpoint]
	if a == nil {
		return nil
	}
	for i, t := range a.usage.request.GetDestinations() {
		if t.GetName() == to.Name && t.GetPurpose() == p && i < len(a.targets) {
			return a.targets[i]
		}
	}
	return nil
}
