// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"io"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// The bounds of one batch, whatever room there is: deliveries are on their way
// while the next ones are taken apart.
const (
	maxBatch      = 256
	maxBatchBytes = 1 << 20
)

// subscription is a key or a pattern without a group. One goroutine calls
// Receive and Seek.
type subscription struct {
	registration pluginapi.Registration
	options      string // of the registration, as JSON
	settings     settings.Subscription
	places       *places
	cursor       *reader.Cursor
	batcher      batcher
	reports      []pluginapi.Report
	failed       *core.Fault // why it has ended
}

// subscribe opens a subscription without a group, where the process before this
// one was, else where its options say.
func (c *conn) subscribe(from *reader.Reader, r *pluginapi.Registration, o settings.Subscription) (pluginapi.Subscription, error) {
	s := &subscription{registration: *r, options: string(r.Options.JSON()), settings: o, places: c.places}
	match := reader.Pattern(r.Name)
	if at, ok := c.places.of(r); ok {
		cursor, err := from.Cursor(match, at.start(), o.Replay)
		if err == nil {
			s.cursor = cursor
			return s, nil
		}
		c.log.Warn("the subscription begins anew: where it stood cannot be found again", "subscription", r.Name, "error", err)
	}
	otherwise := reader.End
	if o.Replay {
		otherwise = reader.Beginning
	}
	cursor, err := from.Cursor(match, startOf(o.Start, otherwise), o.Replay)
	if err != nil {
		return nil, faultOf("subscribe to "+r.Name, err)
	}
	s.cursor = cursor
	s.moved(false)
	return s, nil
}

// start is where a subscription goes on that stood here.
func (p *place) start() reader.Start {
	if p.Caught {
		return reader.Start{Kind: reader.End}
	}
	return reader.Start{Kind: reader.At, At: reader.Place{Created: p.Created, Offset: p.Offset}}
}

// Profiles say that nothing is acknowledged.
func (s *subscription) Profiles() []core.Capabilities {
	return []core.Capabilities{capabilitiesOf(s.registration.Name, &s.settings)}
}

// Receive reads on, as far as there is room. Nothing is read ahead of it, so
// what has not been returned is still to come for whoever reads next.
func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	if s.failed != nil {
		return pluginapi.Batch{}, s.failed
	}
	if room.Messages <= 0 || room.Bytes <= 0 {
		<-ctx.Done()
		return pluginapi.Batch{}, context.Cause(ctx)
	}
	got, err := s.cursor.Next(ctx, s.batcher.room(room.Messages), min(room.Bytes, maxBatchBytes))
	b := pluginapi.Batch{CaughtUp: got.CaughtUp}
	b.Deliveries, b.Memory = s.batcher.read(s.cursor, got.Records)
	s.reports = s.reports[:0]
	for _, p := range got.Problems {
		s.reports = append(s.reports, reportOf(p))
	}
	b.Reports = s.reports
	if len(got.Records) > 0 || got.CaughtUp {
		s.moved(got.CaughtUp)
	}
	switch {
	case ctx.Err() != nil:
		return b, context.Cause(ctx)
	case err != nil:
		return b, faultOf("read "+s.registration.Name, err)
	case got.Ended:
		return b, io.EOF
	}
	return b, nil
}

// moved takes note of where the subscription stands.
func (s *subscription) moved(caught bool) {
	s.places.moved(&s.registration, s.options, s.cursor.Place(), caught)
}

// Seek moves the subscription. A live one that is to move beyond the end ends.
func (s *subscription) Seek(ctx context.Context, to pluginapi.Position) error {
	err := seek(ctx, s.cursor, s.registration.Name, to)
	if err == nil {
		s.moved(false)
		return nil
	}
	f := faultOf("seek", err)
	if is[*reader.PositionError](err) && !s.settings.Replay {
		s.failed = f
	}
	return f
}

// seek puts the cursor of a subscription with a name at a position. One of a
// former delivery must be that of a record that the subscription reads.
func seek(ctx context.Context, cursor *reader.Cursor, name string, to pluginapi.Position) error {
	start, record, err := seekStart(to, name)
	if err != nil {
		return err
	}
	if record != nil {
		r, err := cursor.Read(ctx, record.at)
		if err != nil {
			return err
		}
		if r.Sequence != record.sequence || !reads(name, r.Key) {
			return badPosition("there is another record at "+record.String(), "use the position of a delivery of this subscription")
		}
	}
	return cursor.Seek(ctx, start)
}

// Settle refuses: a file takes no verdict.
func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	return slices.Repeat([]pluginapi.Result{{Status: pluginapi.ResultUnsupported}}, len(vs))
}

// Close ends the subscription.
func (s *subscription) Close(context.Context) error {
	s.cursor.Close()
	return nil
}
