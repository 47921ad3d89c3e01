// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/pluginapi"
)

// Journal keeps copies and messages over the end of the process. Its methods
// may be called from any goroutine. What they are given is valid until they
// return; what they keep must be durable when they return.
//
// A stored row leaves the journal in one of two ways: at the receipt of its
// copy, or, where only this process reads the copy's destination, when the
// copy's own delivery is settled. Both are calls of Forget. A row that never
// left is published by the next run that uses the journal.
type Journal interface {
	// Store keeps a copy that is due in delay and returns its row.
	Store(ctx context.Context, c Copy, delay time.Duration) (row string, err error)
	// Forget removes a row. One that is not there is no error.
	Forget(ctx context.Context, row string) error
	// Park keeps a message that could not be published, with the reason. row is
	// the copy's own row when it was stored before, which becomes the parked
	// one; "" otherwise.
	Park(ctx context.Context, c Copy, row string, reason string) error
	// Due returns stored copies of former runs with what is left of their delay,
	// oldest first, at most n. It does not return what this run stored, nor what
	// it has returned before.
	Due(ctx context.Context, n int) ([]Row, error)
}

// Copy is a message that the runtime publishes.
type Copy struct {
	To           core.Destination
	Message      core.Message
	Purpose      pluginapi.Purpose
	Carry        []byte // the transport's own, of the delivery that it stems from
	Endpoint     string // where that delivery was read
	Subscription string
}

// Row is a stored copy.
type Row struct {
	ID    string
	Copy  Copy
	Delay time.Duration // until it is due; 0 or less = now
}

// journal lets the engine use a Journal. What that throws is an error of it: the
// engine's goroutines go on.
type journal struct{ Journal }

// engineJournal returns what the engine uses; nil stays nil.
func engineJournal(j Journal) settlement.Journal {
	if j == nil {
		return nil
	}
	return journal{j}
}

// call calls f in a goroutine of its own, which it may end without harm to the
// engine's.
func (j journal) call(f func() error) error {
	err := errors.New("journal ended its goroutine with runtime.Goexit")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("journal panicked: %v", v)
			}
		}()
		err = sound(f())
	}()
	<-done
	return err
}

func (j journal) Store(ctx context.Context, c settlement.Copy, delay time.Duration) (row string, err error) {
	err = j.call(func() (err error) {
		row, err = j.Journal.Store(ctx, toCopy(c), delay)
		return err
	})
	return row, err
}

func (j journal) Forget(ctx context.Context, row string) error {
	return j.call(func() error { return j.Journal.Forget(ctx, row) })
}

func (j journal) Park(ctx context.Context, c settlement.Copy, row, reason string) error {
	return j.call(func() error { return j.Journal.Park(ctx, toCopy(c), row, reason) })
}

func (j journal) Due(ctx context.Context, n int) ([]settlement.Row, error) {
	var rows []Row
	err := j.call(func() (err error) {
		rows, err = j.Journal.Due(ctx, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]settlement.Row, len(rows))
	for i, r := range rows {
		out[i] = settlement.Row{ID: r.ID, Copy: fromCopy(r.Copy), Delay: r.Delay}
	}
	return out, nil
}

func toCopy(c settlement.Copy) Copy {
	return Copy{
		To: c.To, Message: c.Message, Purpose: pluginapi.Purpose(c.Purpose), Carry: c.Carry,
		Endpoint: c.Endpoint, Subscription: c.Subscription,
	}
}

func fromCopy(c Copy) settlement.Copy {
	return settlement.Copy{
		To: c.To, Message: c.Message, Purpose: uint8(c.Purpose), Carry: c.Carry,
		Endpoint: c.Endpoint, Subscription: c.Subscription,
	}
}
