// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func TestAsFault(t *testing.T) {
	if f := link.AsFault(nil); f != nil {
		t.Errorf("got %v for no error", f)
	}
	if f := link.AsFault(context.Canceled); f.Code != core.FaultCanceled {
		t.Errorf("got %v", f.Code)
	}
	if f := link.AsFault(errors.New("x")); f.Code != core.FaultInternal || f.Message != "x" {
		t.Errorf("got %+v", f)
	}
}

// TestLongFaultsFitAStatus returns a fault that is larger than what trailers
// can carry.
func TestLongFaultsFitAStatus(t *testing.T) {
	f := &core.Fault{Code: core.FaultInvalid, Message: strings.Repeat("\xffü", 1<<20), RetryAfter: time.Second}
	for range 1000 {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: "a", Message: strings.Repeat("b", 1<<16), Fix: strings.Repeat("ü", 1<<16)})
	}
	l, _ := overGRPC(t, &server{request: func(context.Context, *pb.RequestRequest) (*pb.RequestResponse, error) { return nil, f }})
	_, err := l.Request(t.Context(), &pb.RequestRequest{})
	var got *core.Fault
	if !errors.As(err, &got) || got.Code != core.FaultInvalid || got.RetryAfter != time.Second || len(got.Diagnostics) == 0 {
		t.Errorf("got %T with %d diagnostics", err, len(got.Diagnostics))
	}
}
