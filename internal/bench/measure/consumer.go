// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/json"
	"time"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/source"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// consumer is the host's side of one subscription. One goroutine receives
// while another sends.
type consumer interface {
	start(r *transportpb.Registration) error
	credit(messages, bytes uint64) error
	stop() error
	closeSend() error
	// receive takes one frame and returns its ids, nothingMore for the end of
	// the subscription, and 0 messages for anything else; age is that of its
	// first message, where it says one.
	receive() (first uint64, n int, age time.Duration, err error)
	// settle settles ids: each by a run of its own, or all by one.
	settle(first uint64, n int, each bool) error
}

// nothingMore is the number of messages of the subscription's end.
const nothingMore = -1

// registration is what the source is asked for.
func registration(o source.Options) (*transportpb.Registration, error) {
	b, err := json.Marshal(o)
	return &transportpb.Registration{Name: "bench", Options: b}, err
}

// frameConsumer uses the link's frames.
type frameConsumer struct {
	stream  link.SubscribeStream
	verdict core.VerdictKind
	stamped bool // payloads begin with the time of writing
	in      frame.SubscribeResponse
	runs    []frame.VerdictRun
}

func (c *frameConsumer) start(r *transportpb.Registration) error {
	return c.stream.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: r}})
}

func (c *frameConsumer) credit(messages, bytes uint64) error {
	return c.stream.Send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: messages, Bytes: bytes}})
}

func (c *frameConsumer) stop() error { return c.stream.Send(&frame.SubscribeRequest{Stop: true}) }

func (c *frameConsumer) closeSend() error { return c.stream.CloseSend() }

func (c *frameConsumer) receive() (first uint64, n int, age time.Duration, err error) {
	err = c.stream.Recv(&c.in)
	switch {
	case err != nil:
		return 0, 0, 0, err
	case c.in.Ended != nil:
		return 0, nothingMore, 0, nil
	case c.in.Deliveries == nil:
		return 0, 0, 0, nil
	}
	items := c.in.Deliveries.Items
	first, n = items[0].ID, len(items)
	if c.stamped {
		age = stampAge(items[0].Message.Payload)
	} else if at := items[0].PublishedAt; at != 0 {
		age = time.Duration(time.Now().UnixNano() - at)
	}
	for i := range items { // what a raw handler looks at
		if len(items[i].Message.Payload) == 0 && len(items[i].Message.Name) == 0 {
			return 0, 0, 0, errEmpty
		}
	}
	c.in.Deliveries.Release()
	return first, n, age, nil
}

func (c *frameConsumer) settle(first uint64, n int, each bool) error {
	c.runs = c.runs[:0]
	if !each {
		c.runs = append(c.runs, frame.VerdictRun{First: first, Count: uint64(n), Kind: c.verdict})
	} else {
		for i := range n {
			c.runs = append(c.runs, frame.VerdictRun{First: first + uint64(i), Count: 1, Kind: c.verdict})
		}
	}
	return c.stream.Send(&frame.SubscribeRequest{Settle: c.runs})
}

// generatedConsumer uses generated messages and gRPC's own codec.
type generatedConsumer struct{ stream grpc.ClientStream }

func (c *generatedConsumer) start(r *transportpb.Registration) error {
	return c.stream.SendMsg(&transportpb.SubscribeRequest{Part: &transportpb.SubscribeRequest_Start{
		Start: &transportpb.SubscribeStart{Registration: r}}})
}

func (c *generatedConsumer) credit(messages, bytes uint64) error {
	return c.stream.SendMsg(&transportpb.SubscribeRequest{Part: &transportpb.SubscribeRequest_Credit{
		Credit: &transportpb.Credit{Messages: messages, Bytes: bytes}}})
}

func (c *generatedConsumer) stop() error {
	return c.stream.SendMsg(&transportpb.SubscribeRequest{Part: &transportpb.SubscribeRequest_Stop{Stop: &transportpb.SubscribeStop{}}})
}

func (c *generatedConsumer) closeSend() error { return c.stream.CloseSend() }

func (c *generatedConsumer) receive() (first uint64, n int, age time.Duration, err error) {
	r := &transportpb.SubscribeResponse{}
	if err := c.stream.RecvMsg(r); err != nil {
		return 0, 0, 0, err
	}
	items := r.GetDeliveries().GetItems()
	switch {
	case r.GetEnded() != nil:
		return 0, nothingMore, 0, nil
	case len(items) == 0:
		return 0, 0, 0, nil
	}
	if at := items[0].GetPublishedAt(); at != 0 {
		age = time.Duration(time.Now().UnixNano() - at)
	}
	for _, d := range items {
		if len(d.GetPayload()) == 0 && len(d.GetName()) == 0 {
			return 0, 0, 0, errEmpty
		}
	}
	return items[0].GetId(), len(items), age, nil
}

func (c *generatedConsumer) settle(first uint64, n int, each bool) error {
	s := &transportpb.Settle{}
	if !each {
		s.Runs = append(s.Runs, &transportpb.VerdictRun{First: first, Count: uint64(n), Kind: transportpb.VerdictKind_VERDICT_KIND_ACK})
	} else {
		for i := range n {
			s.Runs = append(s.Runs, &transportpb.VerdictRun{First: first + uint64(i), Count: 1, Kind: transportpb.VerdictKind_VERDICT_KIND_ACK})
		}
	}
	return c.stream.SendMsg(&transportpb.SubscribeRequest{Part: &transportpb.SubscribeRequest_Settle{Settle: s}})
}
