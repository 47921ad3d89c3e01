// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// computed finds the routes to the destinations of a RetryToFunc.
type computed struct {
	routes
}

func newComputed(s *subscribed) *computed {
	return &computed{routes{s: s, purpose: transportpb.Purpose_PURPOSE_RETRY}}
}

// route asks the function and returns the route to what it named. A destination
// that nothing can carry is refused, with the reason.
func (c *computed) route(d *settlement.Delivery) (route core.Route, err error) {
	to, err := c.call(d)
	if err != nil {
		return core.Route{State: core.RouteRefused}, err
	}
	return c.to(c.s.resolve(to))
}

// call calls the user's function; what it throws is an error. The function has a
// goroutine of its own, which it may end without harm to the lane's.
func (c *computed) call(d *settlement.Delivery) (to core.Destination, err error) {
	err = errors.New("RetryToFunc ended its goroutine with runtime.Goexit")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if thrown := recover(); thrown != nil {
				err = fmt.Errorf("RetryToFunc: %w", &PanicError{Value: thrown})
			}
		}()
		to, err = c.s.rules().retryFunc(d.Message, d.Number)
	}()
	<-done
	if err == nil && to.Name == "" {
		err = fmt.Errorf("RetryToFunc named no destination")
	}
	if err != nil {
		return core.Destination{}, sound(err)
	}
	return to, nil
}
