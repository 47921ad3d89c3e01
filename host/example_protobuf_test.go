// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A protobuf message is read as protobuf, or as JSON where its header says so.
func ExampleHandle_protobuf() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("bakes"), func(_ context.Context, m *host.Message[*durationpb.Duration]) error {
		fmt.Println(m.Value.AsDuration())
		return nil
	})

	wire, err := proto.Marshal(durationpb.New(90 * time.Minute))
	if err != nil {
		fmt.Println(err)
	}
	b.Deliver("bakes", hosttest.Message{Payload: wire},
		hosttest.Text(`"5400s"`).With("content-type", "application/json"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1h30m0s
	// 1h30m0s
}
