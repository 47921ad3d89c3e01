// SPDX-License-Identifier: Apache-2.0

package service

import (
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// partitionKey is the header that the rule ByKey reads.
const partitionKey = "partition-key"

// rules returns what a subscription declares.
func rules(f *config.File, s *config.Subscription) []host.Rule {
	rs := policy(&s.Policy)
	if s.Forward != nil {
		rs = append(rs, host.Forward(core.Destination{Endpoint: s.Forward.To, Name: s.Forward.Name}))
	}
	if s.RetryTo != nil {
		rs = append(rs, host.RetryTo(core.Destination{Endpoint: s.RetryTo.To, Name: s.RetryTo.Name}))
	}
	if s.NoDefaults {
		rs = append(rs, host.NoDefaults())
	}
	if s.Exec != nil {
		rs = append(rs, statusRules(exits(f, s))...)
	}
	return rs
}

// policy returns the rules that can stand in defaults as well.
func policy(p *config.Policy) []host.Rule {
	var rs []host.Rule
	if p.MaxAttempts > 0 {
		rs = append(rs, host.MaxAttempts(int(p.MaxAttempts)))
	}
	if p.MaxElapsed > 0 {
		rs = append(rs, host.MaxElapsed(time.Duration(p.MaxElapsed)))
	}
	if d := p.DeadLetter; d != nil {
		var opts []host.DeadLetterOption
		if d.Causes {
			opts = append(opts, host.WithCauses())
		}
		rs = append(rs, host.DeadLetterTo(core.Destination{Endpoint: d.To, Name: d.Name}, opts...))
	}
	if p.Backoff != nil {
		rs = append(rs, host.Backoff(schedule(p.Backoff)))
	}
	if p.Floor != nil {
		rs = append(rs, host.Floor(time.Duration(*p.Floor)))
	}
	if s := p.Snooze; s != nil { // its bounds go with its delay, not with one of an outer level
		rs = append(rs, host.SnoozeLimit(orElse(int(s.Limit), defaultSnoozes), orElse(time.Duration(s.Total), defaultSnoozed)))
	}
	if r, ok := reactions[p.OnUndecodable]; ok {
		rs = append(rs, host.OnUndecodable(r))
	}
	return append(rs, dispatch(p)...)
}

// The bounds of a snooze where the form leaves one of them out.
const (
	defaultSnoozes = 100
	defaultSnoozed = time.Hour
)

// orElse returns v, or the default where v is zero.
func orElse[T comparable](v, or T) T {
	var zero T
	if v == zero {
		return or
	}
	return v
}

// dispatch returns the rules about what is begun, and when.
func dispatch(p *config.Policy) []host.Rule {
	var rs []host.Rule
	if p.Workers > 0 {
		rs = append(rs, host.Workers(int(p.Workers)))
	}
	switch header := p.ByKey; header {
	case "":
	case partitionKey:
		rs = append(rs, host.ByKey())
	default:
		rs = append(rs, host.ByKeyFunc(func(m core.Message) string {
			v, _ := m.Headers.Get(header)
			return string(v)
		}))
	}
	if r := p.RateLimit; r != nil {
		rs = append(rs, host.RateLimit(r.PerSecond, orElse(int(r.Burst), 1)))
	}
	if c := p.CircuitBreaker; c != nil {
		rs = append(rs, host.CircuitBreaker(host.Circuit{
			Share: c.Share, Of: int(c.Of), Pause: time.Duration(c.Pause), Longest: time.Duration(c.Longest), Probes: int(c.Probes),
		}))
	}
	return rs
}

// schedule returns the waits of a backoff.
func schedule(b *config.Backoff) host.Schedule {
	first, longest := time.Duration(b.First), time.Duration(b.Max)
	var s host.Schedule
	switch b.KindOrDefault() {
	case config.BackoffConstant:
		s = host.Constant(first)
	case config.BackoffLinear:
		s = host.Linear(first, longest)
	case config.BackoffDelays:
		delays := make([]time.Duration, len(b.Delays))
		for i, d := range b.Delays {
			delays[i] = time.Duration(d)
		}
		s = host.Delays(delays...)
	default:
		s = host.Exponential(first, longest)
	}
	if b.Jitter != nil {
		s = s.Jitter(*b.Jitter)
	}
	return s
}

// reactions are the values of on_undecodable.
var reactions = map[string]host.Reaction{
	"drop":        host.AsDrop,
	"retry":       host.AsRetry,
	"dead_letter": host.AsDeadLetter,
	"ack":         host.AsAck,
	"fail_fast":   host.FailFast,
}
