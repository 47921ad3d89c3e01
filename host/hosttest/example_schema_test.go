// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pipe"
)

// A broker takes any settings and options. Whether the real transport would take
// a service's own is found without a process: put the transport in the place of
// its plugin, and let Explain check everything. Nothing is connected.
func Example_settings() {
	register := func(h *host.Host) {
		shop := h.Endpoint("shop", host.Plugin{Name: "pipe", Stdio: &host.Stdio{}}, map[string]any{"loopbck": true})
		host.Handle(shop.Subscription("orders", host.Options(map[string]any{"qos": 1})), acks)
	}

	h := host.New(host.WithPlugins(func(_ string, p host.Plugin, settings any) (host.Plugin, any) {
		if p.Name == "pipe" {
			p.InProcess = pipe.New()
		}
		return p, settings
	}))
	register(h)
	_, err := h.Explain(context.Background())
	var wrong *host.StartError
	if errors.As(err, &wrong) {
		for _, f := range wrong.Findings {
			fmt.Printf("%s %s; %s\n", f.Option, f.Message, f.Fix)
		}
	}
	// Output:
	// settings.loopbck is not known; did you mean loopback?
	// options.qos is no known field; remove it: nothing can be set here
}
