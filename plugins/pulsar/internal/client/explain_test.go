// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

func TestExplain(t *testing.T) {
	for name, tt := range map[string]struct {
		err       error
		code      core.FaultCode
		transient bool
		want      string // how the fault begins
	}{
		"refused": {&ServerError{wire.ConsumerBusy, "busy"}, core.FaultConflict, true, "subscribe: ConsumerBusy: busy; end the other"},
		"another type": {
			&ServerError{wire.ConsumerBusy, "Subscription is of different type."}, core.FaultConflict, true,
			"subscribe: ConsumerBusy: Subscription is of different type; give all that read under this name the same type",
		},
		"another type, in other words": {
			&ServerError{wire.ConsumerBusy, "Type mismatch"}, core.FaultConflict, true,
			"subscribe: ConsumerBusy: Type mismatch; end the other consumer, or share the subscription: type shared, failover or key_shared, the same on all sides",
		},
		"another type, with both named": {
			&ServerError{wire.ConsumerBusy, "Subscription is of different type. Active subscription type of 'Shared' is different than the connecting consumer's type 'Exclusive'."}, core.FaultConflict, true,
			"subscribe: ConsumerBusy: Subscription is of different type. Active subscription type of 'Shared' is different than the connecting consumer's type 'Exclusive'; give all that read under this name the same type",
		},
		"too many consumers": {
			&ServerError{wire.ConsumerBusy, "Subscription reached max consumers limit"}, core.FaultConflict, true,
			"subscribe: ConsumerBusy: Subscription reached max consumers limit; end the other consumer, or share the subscription: type shared, failover or key_shared, the same on all sides; or raise the limit of consumers",
		},
		"without words":        {&ServerError{wire.TopicNotFound, ""}, core.FaultNotFound, false, "subscribe: TopicNotFound; create it"},
		"within another":       {fmt.Errorf("after 3 tries: %w", &ServerError{wire.TooManyRequests, "slow"}), core.FaultExhausted, true, "subscribe: TooManyRequests: slow"},
		"refused, late":        {errors.Join(context.DeadlineExceeded, &ServerError{wire.AuthorizationError, "no"}), core.FaultDenied, false, "subscribe: AuthorizationError: no; grant"},
		"lost":                 {&LostError{"h:1", errSilent}, core.FaultUnavailable, true, "subscribe: connection to h:1 lost: the broker does not answer"},
		"lost by refusal":      {&LostError{"h:1", &ServerError{wire.AuthenticationError, "ended"}}, core.FaultUnavailable, true, "subscribe: connection to h:1 lost: AuthenticationError: ended"},
		"not connected":        {&ConnectError{"h:1", errSelf}, core.FaultUnavailable, true, "subscribe: connect to h:1: nobody listens there"},
		"not let in":           {&ConnectError{"h:1", &ServerError{wire.AuthenticationError, "no"}}, core.FaultDenied, true, "subscribe: connect to h:1: AuthenticationError: no; set a token"},
		"not in time":          {&ConnectError{"h:1", context.DeadlineExceeded}, core.FaultTimeout, true, "subscribe: connect to h:1: context deadline"},
		"not any more":         {&ConnectError{"h:1", context.Canceled}, core.FaultCanceled, false, "subscribe: connect to h:1: context canceled"},
		"down":                 {errDown, core.FaultUnavailable, true, "subscribe: no broker can be reached"},
		"our own":              {&ServerError{wire.ProducerBusy, "busy"}, core.FaultConflict, true, "subscribe: ProducerBusy: busy;"},
		"a code not known":     {&ServerError{99, "odd"}, core.FaultUnavailable, true, "subscribe: ServerError(99): odd"},
		"timeout":              {context.DeadlineExceeded, core.FaultTimeout, true, "subscribe: context deadline exceeded"},
		"a text is no refusal": {errors.New("TopicNotFound: really"), core.FaultUnavailable, true, "subscribe: TopicNotFound: really"},
		"unknown":              {errors.New("connection closed"), core.FaultUnavailable, true, "subscribe: connection closed"},
		"canceled":             {fmt.Errorf("x: %w", context.Canceled), core.FaultCanceled, false, "subscribe: x: context canceled"},
		"a fault":              {&core.Fault{Code: core.FaultTooLarge, Message: "large"}, core.FaultTooLarge, false, "subscribe: large"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Explain("subscribe", tt.err)
			if f.Code != tt.code || f.Transient != tt.transient || !strings.HasPrefix(f.Error(), tt.want) {
				t.Errorf("got %d, transient %t: %v\nwant %d, transient %t: %s", f.Code, f.Transient, f, tt.code, tt.transient, tt.want)
			}
		})
	}
}

// Each code that is told apart says whether it passes.
func TestExplainTables(t *testing.T) {
	for code, a := range advices {
		f := Explain("x", &ServerError{code, "why"})
		if f.Code != a.code || f.Transient != a.transient || f.Code == core.FaultUnspecified || !strings.Contains(f.Error(), code.String()+": why") {
			t.Errorf("%s is %v", code, f)
		}
		if got, ok := Refused(&ServerError{code, "why"}); !ok || got != code {
			t.Errorf("%s is read as %v, %t", code, got, ok)
		}
	}
	if code, ok := Refused(&LostError{"h:1", errLost}); ok {
		t.Errorf("a lost connection is a refusal, %v", code)
	}
}

func TestLine(t *testing.T) {
	long := strings.Repeat("ö", maxLine)
	for in, want := range map[string]string{
		"a\n\tb\r\n": "a b", "\x1b[31mred\xff": "[31mred?", "": "",
		long: strings.Repeat("ö", maxLine/2) + "...",
	} {
		if got := line(in); got != want {
			t.Errorf("line(%q) is %q; want %q", in, got, want)
		}
	}
}
