// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

func TestRulesThatAreRefused(t *testing.T) {
	fn := func(core.Message, uint64) (core.Destination, error) { return core.Destination{}, nil }
	q := core.Destination{Name: "q"}
	for name, c := range map[string]struct {
		rules  []Rule
		want   []string // the options of the findings
		places int
	}{
		"none":                        {nil, nil, 0},
		"a cap of 0 (S-GEN-62)":       {[]Rule{MaxAttempts(0)}, []string{"MaxAttempts"}, 1},
		"a cap of -1 (E-12)":          {[]Rule{MaxAttempts(-1)}, []string{"MaxAttempts"}, 1},
		"a cap of 2^31 (E-12)":        {[]Rule{MaxAttempts(math.MaxInt32 + 1)}, []string{"MaxAttempts"}, 1},
		"cap twice (S-GEN-63)":        {[]Rule{MaxAttempts(3), MaxAttempts(4)}, []string{"MaxAttempts"}, 2},
		"to twice (S-GEN-63)":         {[]Rule{RetryTo(q), RetryTo(q)}, []string{"RetryTo"}, 2},
		"to and fn (S-GEN-63)":        {[]Rule{RetryTo(q), RetryToFunc(fn)}, []string{"RetryTo"}, 2},
		"on panic twice":              {[]Rule{OnPanic(AsDrop), OnPanic(AsAck)}, []string{"OnPanic"}, 2},
		"no reaction":                 {[]Rule{OnPanic(-77)}, []string{"OnPanic"}, 1},
		"a dead letter without name":  {[]Rule{DeadLetterTo(core.Destination{Endpoint: "x"})}, []string{"DeadLetterTo"}, 1},
		"a forward without name":      {[]Rule{Forward(core.Destination{})}, []string{"Forward"}, 1},
		"a backoff without delays":    {[]Rule{Backoff(Schedule{})}, []string{"Backoff"}, 1},
		"backoff of 0":                {[]Rule{Backoff(Constant(0))}, []string{"Backoff"}, 1},
		"backoff below 0":             {[]Rule{Backoff(Linear(-1, time.Second))}, []string{"Backoff"}, 1},
		"backoff that shrinks":        {[]Rule{Backoff(Exponential(time.Second, time.Millisecond))}, []string{"Backoff"}, 1},
		"backoff of no list":          {[]Rule{Backoff(Delays())}, []string{"Backoff"}, 1},
		"a listed delay below 0":      {[]Rule{Backoff(Delays(time.Second, -1))}, []string{"Backoff"}, 1},
		"a list of nothing but 0":     {[]Rule{Backoff(Delays(0, 0))}, []string{"Backoff"}, 1},
		"a listed 0":                  {[]Rule{Backoff(Delays(0, time.Second))}, nil, 0},
		"jitter above 1":              {[]Rule{Backoff(Constant(time.Second).Jitter(1.1))}, []string{"Backoff"}, 1},
		"jitter below 0":              {[]Rule{Backoff(Constant(time.Second).Jitter(-0.1))}, []string{"Backoff"}, 1},
		"jitter of no number":         {[]Rule{Backoff(Constant(time.Second).Jitter(math.NaN()))}, []string{"Backoff"}, 1},
		"no time to try in":           {[]Rule{MaxElapsed(0)}, []string{"MaxElapsed"}, 1},
		"a time to try in below 0":    {[]Rule{MaxElapsed(-time.Second)}, []string{"MaxElapsed"}, 1},
		"MaxElapsed twice":            {[]Rule{MaxElapsed(1), MaxElapsed(2)}, []string{"MaxElapsed"}, 2},
		"snoozes below 0":             {[]Rule{SnoozeLimit(-1, time.Hour)}, []string{"SnoozeLimit"}, 1},
		"snoozes in no time":          {[]Rule{SnoozeLimit(1, 0)}, []string{"SnoozeLimit"}, 1},
		"no snoozes":                  {[]Rule{SnoozeLimit(0, 0)}, nil, 0},
		"OnError several times":       {[]Rule{OnError(Is(errGone), AsDrop), OnError(Is(errOther), AsDrop)}, nil, 0},
		"NeverRetry of a panic":       {[]Rule{OnPanic(NeverRetry)}, nil, 0},
		"NeverRetry of bad bytes":     {[]Rule{OnUndecodable(NeverRetry)}, nil, 0},
		"no defaults twice":           {[]Rule{NoDefaults(), NoDefaults()}, []string{"NoDefaults"}, 2},
		"a floor below 0":             {[]Rule{Floor(-1)}, []string{"Floor"}, 1},
		"no floor":                    {[]Rule{Floor(0)}, nil, 0},
		"a timeout of 0":              {[]Rule{Timeout(0)}, []string{"Timeout"}, 1},
		"a naming function of nil":    {[]Rule{RetryToFunc(nil)}, []string{"RetryToFunc"}, 1},
		"several are found together":  {[]Rule{MaxAttempts(0), Timeout(-1), Floor(-1)}, []string{"MaxAttempts", "Timeout", "Floor"}, 3},
		"the zero rule is not a rule": {[]Rule{{}}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := resolve(c.rules, nil)
			var got []string
			n := 0
			for _, f := range found {
				got = append(got, f.Option)
				n += len(f.Places)
				for _, p := range f.Places {
					if !strings.HasPrefix(p, "host/rule_test.go:") {
						t.Errorf("place %q is not where the rule was given", p)
					}
				}
				if f.Message == "" || f.Fix == "" {
					t.Errorf("%+v lacks a message or a fix", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if n != c.places {
				t.Errorf("got %d places, want %d", n, c.places)
			}
		})
	}
}

func TestRulesTwiceNameBothPlaces(t *testing.T) {
	first := MaxAttempts(3)
	second := MaxAttempts(4)
	_, found := resolve([]Rule{first, second}, nil)
	if len(found) != 1 {
		t.Fatalf("got %d findings, want 1", len(found))
	}
	if diff := cmp.Diff([]string{string(first.place), string(second.place)}, found[0].Places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if first.place == second.place {
		t.Errorf("both rules stand at %s", first.place)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		want []string
	}{
		"none":                  {nil, nil},
		"no logger":             {[]Option{WithLogger(nil)}, []string{"WithLogger"}},
		"no journal":            {[]Option{WithJournal(nil)}, []string{"WithJournal"}},
		"a limit below 0":       {[]Option{WithDrainLimit(-1)}, []string{"WithDrainLimit"}},
		"no limit":              {[]Option{WithDrainLimit(0)}, nil},
		"given twice":           {[]Option{StayUp(), StayUp()}, []string{"StayUp"}},
		"no room for copies":    {[]Option{WithWaitingLimits(0, 1)}, []string{"WithWaitingLimits"}},
		"a backoff that shinks": {[]Option{WithRestartBackoff(time.Minute, time.Second)}, []string{"WithRestartBackoff"}},
		"no crashes":            {[]Option{WithBreaker(0, time.Second)}, []string{"WithBreaker"}},
		"no heartbeats":         {[]Option{WithHeartbeat(0, 1)}, []string{"WithHeartbeat"}},
		"no publish window":     {[]Option{WithPublishWindow(0, 0)}, []string{"WithPublishWindow"}},
		"publish limit of 0":    {[]Option{WithPublishLimit(0)}, []string{"WithPublishLimit"}},
		"start limit of 0":      {[]Option{WithStartLimit(0)}, []string{"WithStartLimit"}},
		"connect limit of 0":    {[]Option{WithConnectLimit(0)}, []string{"WithConnectLimit"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			var got []string
			for _, f := range o.apply(c.opts) {
				got = append(got, f.Option)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
