// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// ErrNoSeek says that a transport cannot move its subscriptions: nothing was
// asked of it.
var ErrNoSeek = errors.New("the transport cannot move a subscription; its options say where one begins")

// ErrSubscriptionEnded says that a subscription has come to its end, so that
// nothing is read any more. One that has caught up has not.
var ErrSubscriptionEnded = errors.New("the subscription has come to its end; run the host anew to read it again")

// maxPosition is the most bytes of a position, as deliveries of the protocol have
// them.
const maxPosition = 512 << 10

// Position is a place in what a subscription reads, for [Subscription.Seek]. The
// zero value is none.
type Position struct {
	kind  transportpb.PositionKind
	time  time.Time
	value []byte
}

// Earliest is the first message that the source has.
func Earliest() Position {
	return Position{kind: transportpb.PositionKind_POSITION_KIND_BEGINNING}
}

// Latest is behind the last message that the source has: what is published from
// now on.
func Latest() Position {
	return Position{kind: transportpb.PositionKind_POSITION_KIND_END}
}

// PublishedAfter is the first message that was published after t, by the clock
// and to the precision of the transport; some take one of the time t itself as
// well. t lies between 1970 and 2262.
func PublishedAfter(t time.Time) Position {
	return Position{kind: transportpb.PositionKind_POSITION_KIND_TIME, time: t}
}

// AtPosition is the message that has the position: what [Message.Position] or
// [Receipt].Position gave on the same endpoint, or what else the transport's guide
// says that it takes. The bytes are copied.
func AtPosition(position []byte) Position {
	return Position{kind: transportpb.PositionKind_POSITION_KIND_EXACT, value: cloneBytes(position)}
}

// String shows the position to people.
func (p Position) String() string {
	switch p.kind {
	case transportpb.PositionKind_POSITION_KIND_BEGINNING:
		return "the earliest message"
	case transportpb.PositionKind_POSITION_KIND_END:
		return "the latest message"
	case transportpb.PositionKind_POSITION_KIND_TIME:
		return "what was published after " + p.time.Format(time.RFC3339Nano)
	case transportpb.PositionKind_POSITION_KIND_EXACT:
		return "position " + settlement.Printable(string(p.value[:min(len(p.value), shownPosition)]))
	default:
		return "no position"
	}
}

// shownPosition is how many bytes of a position people are shown.
const shownPosition = 64

// request checks p and returns it as it goes to the plugin.
func (p Position) request() (*transportpb.Seek, *core.Fault) {
	to := &transportpb.Seek{Kind: p.kind, Value: p.value}
	wrong := func(format string, args ...any) (*transportpb.Seek, *core.Fault) {
		return nil, &core.Fault{Code: core.FaultInvalid, Message: fmt.Sprintf(format, args...)}
	}
	switch p.kind {
	case transportpb.PositionKind_POSITION_KIND_UNSPECIFIED:
		return wrong("the position is none; use Earliest, Latest, PublishedAfter or AtPosition")
	case transportpb.PositionKind_POSITION_KIND_TIME:
		to.Time = p.time.UnixNano()
		if p.time.Unix() < 0 || !time.Unix(0, to.Time).Equal(p.time) {
			return wrong("%s lies outside of 1970 to 2262", p.time.Format(time.RFC3339Nano))
		}
	case transportpb.PositionKind_POSITION_KIND_EXACT:
		switch n := len(p.value); {
		case n == 0:
			return wrong("the position is empty: the transport gives its messages none")
		case n > maxPosition:
			return wrong("the position has %d bytes: the limit is %d", n, maxPosition)
		}
	}
	return to, nil
}

// SeekError says why a subscription was not moved.
type SeekError struct {
	Endpoint     string
	Subscription string
	To           Position
	MaybeMoved   bool // the position may have changed all the same
	Err          error
}

// Error names the subscription, the position and the reason.
func (e *SeekError) Error() string {
	maybe := ""
	if e.MaybeMoved {
		maybe = " (it may have moved)"
	}
	return fmt.Sprintf("seek subscription %s of endpoint %s to %v%s: %v", e.Subscription, e.Endpoint, e.To, maybe, e.Err)
}

// Unwrap returns the reason.
func (e *SeekError) Unwrap() error { return e.Err }

// Seek moves the subscription and returns once it has: what is delivered from
// then on stems from the new position. Deliveries of before are void. What no
// handler has begun is dropped, what a handler has goes on, and whatever it says
// is no verdict any more: an ack takes nothing away of what is to come again, and
// a retry leaves a copy only where nobody can say that the message comes again.
// Copies and dead letters that were under way or wait for their time leave all the
// same. While Seek waits the subscription begins nothing.
//
// Where several processes or hosts share the subscription it is moved for all of
// them. What the position means, and what is read again of it, is the
// transport's: see its guide. A plugin that is started again goes on where the
// source has the subscription, which is the new position only where the source
// keeps one.
//
// Seek may be called from any goroutine, a handler of the subscription as well,
// and while it is paused. Seeks of a subscription are carried out one after the
// other. Without a deadline it waits for as long as the transport takes, up to a
// minute; ctx ends the wait, not what was asked for.
//
// Errors are a [*SeekError]: [ErrEndpointDown] before the host is ready, while the
// plugin is not up and during a stop; [ErrNoSeek]; [ErrSubscriptionEnded]; a
// [*core.Fault] of a position that the transport or the host refused, after which
// all is as before, unless MaybeMoved says that some of several scopes (partitions)
// have moved; or ctx's error. It panics for a Subscription that no endpoint
// has made.
func (s *Subscription) Seek(ctx context.Context, to Position) error {
	s.exists("Subscription.Seek")
	failed := func(maybe bool, err error) error {
		return &SeekError{Endpoint: s.endpoint.name, Subscription: s.name, To: to, MaybeMoved: maybe, Err: err}
	}
	request, fault := to.request()
	if fault != nil {
		return failed(false, fault)
	}
	if err := ctx.Err(); err != nil {
		return failed(false, err)
	}
	lane, can := s.seekable()
	switch {
	case lane == nil:
		return failed(false, ErrEndpointDown)
	case !can:
		return failed(false, ErrNoSeek)
	}
	maybe, err := lane.Seek(ctx, request)
	switch {
	case errors.Is(err, settlement.ErrDown):
		return failed(maybe, ErrEndpointDown)
	case errors.Is(err, settlement.ErrOver):
		return failed(maybe, ErrSubscriptionEnded)
	case err != nil:
		return failed(maybe, err)
	}
	s.endpoint.host.options.logger.Info("subscription was moved", "endpoint", s.endpoint.name, "subscription", s.name, "to", to.String())
	return nil
}

// seekable returns the lane of the run that serves, nil where none does, and
// whether its transport can move it.
func (s *Subscription) seekable() (*settlement.Lane, bool) {
	s.pausing.mu.Lock()
	defer s.pausing.mu.Unlock()
	return s.pausing.lane, s.pausing.seeks
}
