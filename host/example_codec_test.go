// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// reversed is a codec of a silly format.
type reversed struct{}

func (reversed) ContentTypes() []string { return []string{"text/reversed"} }

func (reversed) Marshal(v any) ([]byte, error) {
	text := []byte(fmt.Sprint(v))
	slices.Reverse(text)
	return text, nil
}

func (reversed) Unmarshal(data []byte, v any) error {
	text, ok := v.(*string)
	if !ok {
		return fmt.Errorf("%T is no text", v)
	}
	turned := slices.Clone(data)
	slices.Reverse(turned)
	*text = string(turned)
	return nil
}

// WithCodec adds a format beside JSON and protobuf. The content-type header says
// which one a message is in.
func ExampleWithCodec() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithCodec(reversed{}))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[string]) error {
		fmt.Println(m.Value)
		return nil
	})

	b.Deliver("orders", hosttest.Text("daerb").With("content-type", "text/reversed"), hosttest.Text(`"milk"`))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bread
	// milk
}
