// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

func TestDispatchRulesThatAreRefused(t *testing.T) {
	key := func(core.Message) string { return "" }
	for name, c := range map[string]struct {
		rules []host.Rule
		want  []string
	}{
		"no worker":                 {[]host.Rule{host.Workers(0)}, []string{"orders: Workers"}},
		"too many workers":          {[]host.Rule{host.Workers(10_001)}, []string{"orders: Workers"}},
		"workers twice":             {[]host.Rule{host.Workers(2), host.Workers(2)}, []string{"orders: Workers"}},
		"two keys":                  {[]host.Rule{host.Workers(2), host.ByKey(), host.ByKeyFunc(key)}, []string{"orders: ByKey"}},
		"a key without a function":  {[]host.Rule{host.Workers(2), host.ByKeyFunc(nil)}, []string{"orders: ByKeyFunc"}},
		"no rate":                   {[]host.Rule{host.RateLimit(0, 1)}, []string{"orders: RateLimit"}},
		"a rate that is no number":  {[]host.Rule{host.RateLimit(math.NaN(), 1)}, []string{"orders: RateLimit"}},
		"a rate without an end":     {[]host.Rule{host.RateLimit(math.Inf(1), 1)}, []string{"orders: RateLimit"}},
		"a rate below 0":            {[]host.Rule{host.RateLimit(-1, 1)}, []string{"orders: RateLimit"}},
		"no burst":                  {[]host.Rule{host.RateLimit(1, 0)}, []string{"orders: RateLimit"}},
		"a share above 1":           {[]host.Rule{host.CircuitBreaker(host.Circuit{Share: 1.1})}, []string{"orders: CircuitBreaker"}},
		"a share that is no number": {[]host.Rule{host.CircuitBreaker(host.Circuit{Share: math.NaN()})}, []string{"orders: CircuitBreaker"}},
		"of less than nothing":      {[]host.Rule{host.CircuitBreaker(host.Circuit{Of: -1})}, []string{"orders: CircuitBreaker"}},
		"of too many":               {[]host.Rule{host.CircuitBreaker(host.Circuit{Of: 10_001})}, []string{"orders: CircuitBreaker"}},
		"a pause below 0":           {[]host.Rule{host.CircuitBreaker(host.Circuit{Pause: -1})}, []string{"orders: CircuitBreaker"}},
		"the longest is shorter":    {[]host.Rule{host.CircuitBreaker(host.Circuit{Pause: time.Minute, Longest: time.Second})}, []string{"orders: CircuitBreaker"}},
		"probes below 0":            {[]host.Rule{host.CircuitBreaker(host.Circuit{Probes: -1})}, []string{"orders: CircuitBreaker"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService()
			host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), acks, c.rules...)
			e := startError(t, s)
			if diff := cmp.Diff(c.want, options(e)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
			}
		})
	}
}

// Keys order nothing that one worker does not; a start says so and goes on.
func TestKeysWithoutWorkers(t *testing.T) {
	s := newService()
	host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), acks, host.ByKey())
	s.serve(t)
	if got := s.log.lines("code=L-CHECK", "option=ByKey", "Workers"); len(got) != 1 {
		t.Errorf("%d lines tell of it, want one", len(got))
	}
}
