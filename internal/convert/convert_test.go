// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// full is a T with every field set to something.
func full[T any](t *testing.T) T {
	var v T
	r := reflect.ValueOf(&v).Elem()
	for i := range r.NumField() {
		switch f := r.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("text")
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			t.Fatalf("field %s is a %v", r.Type().Field(i).Name, f.Kind())
		}
	}
	return v
}

// travel marshals and unmarshals.
func travel[T proto.Message](t *testing.T, m T) T {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface().(T)
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryFieldTravels(t *testing.T) {
	c := full[core.Capabilities](t)
	if d := cmp.Diff(c, convert.ToCapabilities(travel(t, convert.FromCapabilities(c)))); d != "" {
		t.Error(d)
	}
	p := full[core.Publishing](t)
	if d := cmp.Diff(p, convert.ToPublishing(travel(t, convert.FromPublishing(p)))); d != "" {
		t.Error(d)
	}
	f := full[core.Fault](t)
	if d := cmp.Diff(&f, convert.ToFault(travel(t, convert.FromFault(&f)))); d != "" {
		t.Error(d)
	}
	cs := []core.Capabilities{c, {}}
	if d := cmp.Diff(cs, convert.ToProfiles(convert.FromProfiles(cs))); d != "" {
		t.Error(d)
	}
}

// TestNumbersAreTheProtocols compares the last value of every enum that is cast
// between core and the protocol.
func TestNumbersAreTheProtocols(t *testing.T) {
	tests := map[string][2]int{
		"ack":       {int(core.AckCumulative), int(pb.AckMode_ACK_MODE_CUMULATIVE)},
		"requeue":   {int(core.RequeueDelayed), int(pb.RequeueMode_REQUEUE_MODE_DELAYED)},
		"reject":    {int(core.RejectDeadLetters), int(pb.RejectMode_REJECT_MODE_DEAD_LETTERS)},
		"counts":    {int(core.CountNative), int(pb.CountMode_COUNT_MODE_NATIVE)},
		"unsettled": {int(core.UnsettledOnTimeout), int(pb.Unsettled_UNSETTLED_ON_TIMEOUT)},
		"order":     {int(core.OrderTotal), int(pb.OrderMode_ORDER_MODE_TOTAL)},
		"confirms":  {int(core.ConfirmStored), int(pb.Confirm_CONFIRM_STORED)},
		"retains":   {int(core.RetainTransport), int(pb.Retention_RETENTION_TRANSPORT)},
		"headers":   {int(core.HeadersEnveloped), int(pb.HeaderMode_HEADER_MODE_ENVELOPED)},
		"fault":     {int(core.FaultInternal), int(pb.FaultCode_FAULT_CODE_INTERNAL)},
		"verdict":   {int(core.VerdictExtend), int(pb.VerdictKind_VERDICT_KIND_EXTEND)},
	}
	for name, n := range tests {
		if n[0] != n[1] {
			t.Errorf("%s: core ends with %d, the protocol with %d", name, n[0], n[1])
		}
	}
	lasts := map[string][2]int{
		"ack": {len(pb.AckMode_name), int(core.AckCumulative)}, "requeue": {len(pb.RequeueMode_name), int(core.RequeueDelayed)},
		"reject": {len(pb.RejectMode_name), int(core.RejectDeadLetters)}, "counts": {len(pb.CountMode_name), int(core.CountNative)},
		"unsettled": {len(pb.Unsettled_name), int(core.UnsettledOnTimeout)}, "order": {len(pb.OrderMode_name), int(core.OrderTotal)},
		"confirms": {len(pb.Confirm_name), int(core.ConfirmStored)}, "retains": {len(pb.Retention_name), int(core.RetainTransport)},
		"headers": {len(pb.HeaderMode_name), int(core.HeadersEnveloped)}, "fault": {len(pb.FaultCode_name), int(core.FaultInternal)},
		"verdict": {len(pb.VerdictKind_name), int(core.VerdictExtend)},
	}
	for name, n := range lasts {
		if n[0] != n[1]+1 {
			t.Errorf("%s: the protocol has %d values, core %d", name, n[0], n[1]+1)
		}
	}
}

func TestAddressesArePrintableAndFew(t *testing.T) {
	long := strings.Repeat("a", 1024)
	bad := []string{"", long + "a", "tcp://\x1b[31m", "a\nb", "\xff", "a\u202eb"}
	kept, left := convert.Addresses(append([]string{"tcp://[::1]:5", "ipc:///tmp/ü x"}, append(bad, long)...))
	if d := cmp.Diff([]string{"tcp://[::1]:5", "ipc:///tmp/ü x", long}, kept); d != "" || left != len(bad) {
		t.Errorf("%d left out, want %d; kept (-want +got):\n%s", left, len(bad), d)
	}
	if kept, left = convert.Addresses(slices.Repeat([]string{"a"}, 70)); len(kept) != 64 || left != 6 {
		t.Errorf("of 70 %d are kept and %d left out", len(kept), left)
	}
	if kept, left = convert.Addresses(nil); kept != nil || left != 0 {
		t.Errorf("of none: %v, %d", kept, left)
	}
}

func TestNewerValuesReadAsTheWeakest(t *testing.T) {
	c := convert.ToCapabilities(&pb.Capabilities{Ack: 99, Requeue: -1, Reject: 256, Counts: 257, Unsettled: 1 << 20, Order: 3})
	if d := cmp.Diff(core.Capabilities{}, c); d != "" {
		t.Error(d)
	}
	if f := convert.ToFault(&pb.Fault{Code: 1000}); f.Code != core.FaultUnspecified {
		t.Errorf("got code %v", f.Code)
	}
	if d := cmp.Diff(core.Capabilities{}, convert.ToCapabilities(nil)); d != "" {
		t.Error(d)
	}
	if convert.FromFault(nil) != nil || convert.ToFault(nil) != nil {
		t.Error("no fault became one")
	}
}
