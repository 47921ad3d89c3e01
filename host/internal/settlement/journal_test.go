// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// journal is one in memory whose calls can fail.
type journal struct {
	mu        sync.Mutex
	failStore bool
	failPark  bool
	next      int
	rows      map[string]Copy
	parked    map[string]Copy
	calls     []string
	due       []Row
}

func newJournal() *journal {
	return &journal{rows: make(map[string]Copy), parked: make(map[string]Copy)}
}

func clone(c Copy) Copy {
	c.Message = c.Message.Clone()
	c.Carry = append([]byte(nil), c.Carry...)
	return c
}

func (j *journal) Store(_ context.Context, c Copy, delay time.Duration) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, fmt.Sprintf("store %s %v", c.To.Name, delay))
	if j.failStore {
		return "", errors.New("disk is full")
	}
	j.next++
	row := fmt.Sprint("row", j.next)
	j.rows[row] = clone(c)
	return row, nil
}

func (j *journal) Forget(_ context.Context, row string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, "forget "+row)
	delete(j.rows, row)
	return nil
}

func (j *journal) Park(_ context.Context, c Copy, row, reason string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, "park "+row)
	if j.failPark {
		return errors.New("disk is full")
	}
	delete(j.rows, row)
	j.next++
	j.parked[fmt.Sprint("parked", j.next)] = clone(c)
	if reason == "" {
		j.calls = append(j.calls, "without a reason")
	}
	return nil
}

func (j *journal) Due(_ context.Context, n int) ([]Row, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = min(n, len(j.due))
	out := j.due[:n]
	j.due = j.due[n:]
	return out, nil
}

// kept counts rows and parked messages.
func (j *journal) kept() (rows, parked int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.rows), len(j.parked)
}
