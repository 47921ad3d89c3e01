// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// Short names for the codes that this plugin uses.
const (
	invalid     = pb.FaultCode_FAULT_CODE_INVALID
	unsupported = pb.FaultCode_FAULT_CODE_UNSUPPORTED
	conflict    = pb.FaultCode_FAULT_CODE_CONFLICT
	tooLarge    = pb.FaultCode_FAULT_CODE_TOO_LARGE
	unavailable = pb.FaultCode_FAULT_CODE_UNAVAILABLE
	timedOut    = pb.FaultCode_FAULT_CODE_TIMEOUT
	canceled    = pb.FaultCode_FAULT_CODE_CANCELED
	exhausted   = pb.FaultCode_FAULT_CODE_EXHAUSTED
	closed      = pb.FaultCode_FAULT_CODE_CLOSED
)

func fault(code pb.FaultCode, format string, args ...any) *pb.Fault {
	return &pb.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// passing is a fault that trying again can help.
func passing(code pb.FaultCode, format string, args ...any) *pb.Fault {
	f := fault(code, format, args...)
	f.Transient = true
	return f
}

func refuse(f *pb.Fault) error { return &refusal{f} }
