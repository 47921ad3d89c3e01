// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

func TestExplain(t *testing.T) {
	joined := errors.Join(context.DeadlineExceeded, errors.New("server error: ConsumerBusy: Exclusive consumer is already connected"))
	for name, tt := range map[string]struct {
		err       error
		code      core.FaultCode
		transient bool
		want      string // how the fault begins
	}{
		"refused":             {errors.New("server error: ConsumerBusy: busy"), core.FaultConflict, true, "subscribe: ConsumerBusy: busy; end the other"},
		"refused, tried long": {joined, core.FaultConflict, true, "subscribe: ConsumerBusy: Exclusive consumer is already connected;"},
		"another type": {
			errors.New("server error: ConsumerBusy: Subscription is of different type."), core.FaultConflict, true,
			"subscribe: ConsumerBusy: Subscription is of different type; give all that read under this name the same type",
		},
		"lookup":            {errors.New("TopicNotFound"), core.FaultNotFound, false, "subscribe: TopicNotFound; create it"},
		"subscribe":         {errors.New("AuthorizationError: no"), core.FaultDenied, false, "subscribe: AuthorizationError: no; grant"},
		"ack":               {errors.New("ack response error: PersistenceError: disk"), core.FaultUnavailable, true, "subscribe: PersistenceError: disk"},
		"within other text": {fmt.Errorf("failed to x due to %w", errors.New("server error: TooManyRequests: slow")), core.FaultExhausted, true, "subscribe: TooManyRequests: slow"},
		"our own":           {&ServerError{wire.ProducerBusy, "busy"}, core.FaultConflict, true, "subscribe: ProducerBusy: busy;"},
		"a code not known":  {&ServerError{99, "odd"}, core.FaultUnavailable, true, "subscribe: ServerError(99): odd"},
		"queue is full":     {pulsar.ErrSendQueueIsFull, core.FaultExhausted, true, "subscribe: producer send queue is full"},
		"timeout":           {pulsar.ErrSendTimeout, core.FaultTimeout, true, "subscribe: message send timeout"},
		"too large":         {pulsar.ErrMessageTooLarge, core.FaultTooLarge, false, "subscribe: message size exceeds"},
		"terminated":        {errors.Join(pulsar.ErrTopicTerminated, errors.New("server error: TopicTerminatedError: end")), core.FaultClosed, false, "subscribe: TopicTerminatedError: end"},
		"fenced":            {errors.Join(pulsar.ErrProducerFenced, errors.New("x")), core.FaultConflict, false, "subscribe: producer fenced"},
		"no broker":         {errors.Join(context.DeadlineExceeded, errors.New("connection error")), core.FaultTimeout, true, "subscribe: context deadline exceeded connection error"},
		"unknown":           {errors.New("connection closed"), core.FaultUnavailable, true, "subscribe: connection closed"},
		"canceled":          {fmt.Errorf("x: %w", context.Canceled), core.FaultCanceled, false, "subscribe: x: context canceled"},
		"a fault":           {&core.Fault{Code: core.FaultTooLarge, Message: "large"}, core.FaultTooLarge, false, "subscribe: large"},
		"a name in a sentence": {
			errors.New("the topic says TopicNotFound: really"), core.FaultUnavailable, true, "subscribe: the topic says TopicNotFound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Explain("subscribe", tt.err)
			if f.Code != tt.code || f.Transient != tt.transient || !strings.HasPrefix(f.Error(), tt.want) {
				t.Errorf("got %d, transient %t: %v\nwant %d, transient %t: %s", f.Code, f.Transient, f, tt.code, tt.transient, tt.want)
			}
		})
	}
}

// Each code and each result that is told apart says whether it passes.
func TestExplainTables(t *testing.T) {
	for code, a := range advices {
		f := Explain("x", fmt.Errorf("server error: %s: why", code))
		if f.Code != a.code || f.Transient != a.transient || f.Code == core.FaultUnspecified || !strings.Contains(f.Error(), code.String()+": why") {
			t.Errorf("%s is %v", code, f)
		}
		if got, ok := Refused(fmt.Errorf("server error: %s: why", code)); !ok || got != code {
			t.Errorf("%s is read as %v, %t", code, got, ok)
		}
	}
	for result, a := range results {
		if a.code == core.FaultUnspecified {
			t.Errorf("result %d has no class", result)
		}
	}
	if code, ok := Refused(errors.New("connection closed")); ok {
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
