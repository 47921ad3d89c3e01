// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A handler of []byte, or of core.Message, gets what came as it came. The bytes
// are valid until it returns; Clone keeps a message for longer.
func ExampleMessage_Clone() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	files := h.Endpoint("files", host.Plugin{Name: "mqtt"}, nil)

	var kept []*host.Message[[]byte]
	host.Handle(files.Subscription("scans"), func(_ context.Context, m *host.Message[[]byte]) error {
		kept = append(kept, m.Clone())
		return nil
	})

	b.Deliver("scans", hosttest.Text("%PDF-1.7").With("X-Page", "1").With("x-page", "2"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, m := range kept {
		fmt.Printf("%s: %s, page %s of %d headers\n", m.Name(), m.Value, m.Header("X-PAGE"), len(m.Headers()))
	}
	// Output: scans: %PDF-1.7, page 2 of 2 headers
}
