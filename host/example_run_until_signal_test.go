// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// RunUntilSignal is a service's main: the first signal stops the host in order,
// the second one at once.
func ExampleRunUntilSignal() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithDrainLimit(time.Minute))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		// What is in work when the signal comes is finished.
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		fmt.Printf("baked %s\n", m.Value)
		return nil
	})

	b.Deliver("orders", hosttest.Text("bread"))
	fmt.Println(host.RunUntilSignal(context.Background(), h))
	// Output:
	// baked bread
	// <nil>
}
