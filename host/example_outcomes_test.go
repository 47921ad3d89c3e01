// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A plain error is a retry. Drop and DeadLetter end a message; Retry and
// RetryAfter give it another try.
func ExampleDrop() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	mail := h.Endpoint("mail", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(mail.Subscription("outbox"), func(_ context.Context, m *host.Message[[]byte]) error {
		switch string(m.Value) {
		case "spam":
			return host.Drop(errors.New("nobody wants that"))
		case "to nobody":
			return host.DeadLetter(errors.New("no address"))
		case "greylisted":
			if m.Attempt() == 1 {
				return host.RetryAfter(10*time.Millisecond, errors.New("try later"))
			}
		}
		fmt.Printf("sent %q at attempt %d\n", m.Value, m.Attempt())
		return nil
	}, host.DeadLetterTo(mail.To("returned")), host.MaxAttempts(5))

	b.Deliver("outbox", hosttest.Text("spam"), hosttest.Text("to nobody"), hosttest.Text("greylisted"), hosttest.Text("letter"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, m := range b.Published("returned") {
		fmt.Printf("returned %q: %s\n", m.Text(), m.Header("x-longshore-reason"))
	}
	// Output:
	// sent "letter" at attempt 1
	// sent "greylisted" at attempt 2
	// returned "to nobody": no address
}
