// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"

	"github.com/longshore-go/longshore/core"
)

// Releaser is a Subscription that is told when deliveries are released: nothing
// goes to the source, and no verdict follows. Most transports need not know.
// Release runs in order with Settle, on the same goroutine, and does not block.
type Releaser interface {
	Release(handles []any)
}

// LateAcker is a Subscription whose source still takes an ack by identity after
// the delivery became void, as after an ack timeout. AckLate runs in order with
// Settle, on the same goroutine, and answers ResultDone or ResultStale for each
// handle.
type LateAcker interface {
	AckLate(ctx context.Context, handles []any) []Result
}

// IntakeStopper is a Subscription that is told that no Receive follows: the host
// has stopped or half-closed the stream or is gone, the endpoint closes, or
// Receive itself has ended the subscription. StopIntake is called at most once,
// by the goroutine that calls Receive and after its last Receive has returned.
// Where the host is there still, it comes before the host learns that the
// subscription has ended, so Settle may run beside it and may be called behind
// it. What the last Receive returned has been passed on by then, or stays
// unsettled. It does not block.
//
// A Subscription whose Receive does not return within the SDK's limit is closed
// without it.
type IntakeStopper interface {
	StopIntake()
}

// Finisher is a Subscription that is told that its stream ends in order: the
// host has half-closed it, and all its verdicts were carried out. What has had
// neither a verdict nor a release by then, in the host's hands or on the way to
// it, no handler has begun, or one has put it off. A source that counts need not
// count it; anything else is a delivery like others. held are the handles of
// what [Held] has taken a delayed requeue of and not handed back: they have had
// their verdict, though Settle was not called.
//
// Finish is called at most once, behind the last Receive and Settle and before
// Close, and ctx bounds it. It is not called where the stream was cancelled, the
// host is gone, the endpoint was closed under the stream, or a call of the
// subscription did not return within the SDK's limit.
type Finisher interface {
	Finish(ctx context.Context, held []any)
}

// Holder is a Subscription that is told which deliveries [Held] has taken a delayed
// requeue of: it comes when the delay is over, so a timer of the source that counts
// for unsettled deliveries need not count until then. Hold runs in order with Settle,
// on the same goroutine, and does not block.
type Holder interface {
	Hold(handles []any)
}

// powers are what a Subscription can do beside delivering, nil where it cannot.
type powers struct {
	seeker   Seeker
	releaser Releaser
	late     LateAcker
	stopper  IntakeStopper
	finisher Finisher
	holder   Holder
	later    laterAccepter
	misfit   func(where string) *core.Fault // what a wrapper of this package cannot wrap; asked after Profiles
}

// laterAccepter is a wrapper of this package that answers resultLater: it calls
// accept with the ids of verdicts once it accepts them.
type laterAccepter interface {
	acceptLater(accept func(ids []uint64))
}

// wrapper is a Subscription of this package around another one. Its own methods
// forward what the inner one has, so they alone do not say what there is.
type wrapper interface {
	powers() powers
}

// powersOf returns what s can do.
func powersOf(s Subscription) powers {
	if w, ok := s.(wrapper); ok {
		return w.powers()
	}
	var p powers
	p.seeker, _ = s.(Seeker)
	p.releaser, _ = s.(Releaser)
	p.late, _ = s.(LateAcker)
	p.stopper, _ = s.(IntakeStopper)
	p.finisher, _ = s.(Finisher)
	p.holder, _ = s.(Holder)
	return p
}
