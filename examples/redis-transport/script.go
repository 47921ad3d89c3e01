// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed" // of the scripts
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/pluginapi"
)

// Between two commands others may claim an entry or settle it. What must not be
// torn apart is a script, which the server runs as one command.
var (
	//go:embed take.lua
	takeSource string
	//go:embed settle.lua
	settleSource string
	//go:embed leave.lua
	leaveSource string

	takeScript   = redis.NewScript(takeSource)
	settleScript = redis.NewScript(settleSource)
	leaveScript  = redis.NewScript(leaveSource)
)

// maxTake is the most entries of one script: the server does nothing else
// meanwhile.
const maxTake = 256

// entry is an entry of a stream as a group delivers it.
type entry struct {
	id     string
	count  int64
	fields []string
}

// taken is what take.lua returns.
type taken struct {
	entries []entry
	deleted []string // ids of pending entries that are not in the stream any more
	full    bool     // the room is used up, there may be more
}

// runTake runs take.lua.
func (s *subscription) runTake(ctx context.Context, room pluginapi.Room, due bool) (t taken, err error) {
	res, err := takeScript.Run(ctx, s.conn.client, []string{s.stream},
		s.group, s.consumer, s.hold.Milliseconds(), min(room.Messages, maxTake), room.Bytes, due).Slice()
	if err != nil {
		return t, err
	}
	if len(res) != 3 {
		return t, errAnswer
	}
	t.full = res[2] == int64(1)
	if t.entries, err = entriesOf(res[0]); err == nil {
		t.deleted, err = textsOf(res[1])
	}
	return t, err
}

// runSettle runs settle.lua; steps are three arguments each.
func (s *subscription) runSettle(ctx context.Context, steps []any) ([]int64, error) {
	args := append([]any{s.group, s.consumer, s.conn.endpoint.settings.DeleteAcked}, steps...)
	return settleScript.Run(ctx, s.conn.client, []string{s.stream}, args...).Int64Slice()
}

// runLeave runs leave.lua.
func (s *subscription) runLeave(ctx context.Context) error {
	return leaveScript.Run(ctx, s.conn.client, []string{s.stream}, s.group, s.consumer).Err()
}

// readNew waits on the subscription's own connection for one new entry, at most
// for limit. The client's own call would give the fields as a map, which has
// neither order nor repeats.
func (s *subscription) readNew(ctx context.Context, limit time.Duration) ([]entry, error) {
	res, err := s.waiter.Do(ctx, "XREADGROUP", "GROUP", s.group, s.consumer, "COUNT", 1,
		"BLOCK", max(limit.Milliseconds(), 1), "STREAMS", s.stream, ">").Slice()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(res) != 1 {
		return nil, errAnswer
	}
	stream, ok := res[0].([]any) // its name and its entries
	if !ok || len(stream) != 2 {
		return nil, errAnswer
	}
	return entriesOf(stream[1])
}

// errAnswer says that the server is not what it was taken for.
var errAnswer = errors.New("the answer is not as expected")

// entriesOf reads a list of entries, each its id, its fields and, where it is not
// the first delivery, its count.
func entriesOf(x any) ([]entry, error) {
	list, ok := x.([]any)
	if !ok {
		return nil, errAnswer
	}
	entries := make([]entry, len(list))
	for i := range list {
		parts, ok := list[i].([]any)
		if !ok || len(parts) < 2 {
			return nil, errAnswer
		}
		e := entry{count: 1}
		if e.id, ok = parts[0].(string); !ok {
			return nil, errAnswer
		}
		var err error
		if e.fields, err = textsOf(parts[1]); err != nil {
			return nil, err
		}
		if len(parts) > 2 {
			if e.count, ok = parts[2].(int64); !ok {
				return nil, errAnswer
			}
		}
		entries[i] = e
	}
	return entries, nil
}

func textsOf(x any) ([]string, error) {
	list, ok := x.([]any)
	if !ok {
		return nil, errAnswer
	}
	texts := make([]string, len(list))
	for i := range list {
		if texts[i], ok = list[i].(string); !ok {
			return nil, errAnswer
		}
	}
	return texts, nil
}
