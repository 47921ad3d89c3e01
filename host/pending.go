// SPDX-License-Identifier: Apache-2.0

package host

import "context"

// closed is what Done returns when there is nothing to wait for.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Pending is a publish under way, see [Publisher.PublishAsync]. Its methods may
// be called from any goroutine. One that nobody looks at costs nothing more; its
// error is lost then.
type Pending struct{ f flight }

// Done returns a channel that is closed when the publish has come to its end.
func (p *Pending) Done() <-chan struct{} {
	f := &p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.told:
		return closed
	case f.done == nil:
		f.done = make(chan struct{})
	}
	return f.done
}

// Receipt waits for the end of the publish and returns what it came to, as
// [Publisher.Publish] does. It may be called more than once. The end of ctx
// ends the wait, not the publish: the error is ctx's, and no [*PublishError].
func (p *Pending) Receipt(ctx context.Context) (Receipt, error) {
	f := &p.f
	f.mu.Lock()
	told, receipt, err := f.told, f.receipt, f.err
	f.mu.Unlock()
	if told {
		return receipt, err
	}
	select {
	case <-p.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.receipt, f.err
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
}
