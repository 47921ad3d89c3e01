// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestFaults(t *testing.T) {
	for want, f := range map[string]*core.Fault{
		`publish to "a\nb": 3 wait; wait`:       fault.Passing(core.FaultExhausted, "wait", "%s: %d wait", fault.PublishTo("a\nb"), 3),
		`publish to "jobs": too large`:          fault.Refusal(core.FaultTooLarge, "%s: too large", fault.PublishTo("jobs")),
		`subscribe: the endpoint is closed`:     fault.Closed("subscribe"),
		`publish to "": the endpoint is closed`: fault.Closed(fault.PublishTo("")),
	} {
		if f.Error() != want || f.Transient != (f.Code == core.FaultExhausted) {
			t.Errorf("got %q, transient: %t; want %q", f, f.Transient, want)
		}
	}
	if got := fault.PublishTo(strings.Repeat("n", 1000)); len(got) > 100 {
		t.Errorf("a long name makes %q", got)
	}
}

// What failed stands before its reason, and a fault stays what it is.
func TestOf(t *testing.T) {
	advised := fault.Passing(core.FaultExhausted, "wait", "too many")
	for _, tt := range []struct {
		err  error
		want *core.Fault
	}{
		{errors.New("no route"), &core.Fault{Code: core.FaultUnavailable, Message: "connect: no route"}},
		{context.DeadlineExceeded, &core.Fault{Code: core.FaultTimeout, Message: "connect: context deadline exceeded"}},
		{fmt.Errorf("dial: %w", context.Canceled), &core.Fault{Code: core.FaultCanceled, Message: "connect: dial: context canceled"}},
		{fmt.Errorf("dial: %w", advised), fault.Passing(core.FaultExhausted, "wait", "connect: too many")},
	} {
		if got := fault.Of("connect", tt.err); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: got %+v, want %+v", tt.err, got, tt.want)
		}
	}
	if advised.Message != "too many" {
		t.Errorf("the fault has become %q", advised.Message)
	}
}

func TestShown(t *testing.T) {
	for name, want := range map[string]string{
		"a/b c": "a/b c", "": `""`, "a\nb": `"a\nb"`, `a"b`: `"a\"b"`,
		strings.Repeat("n", 81): `"` + strings.Repeat("n", 80) + `..."`,
	} {
		if got := fault.Shown(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}
