// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// P-12: payloads below the broker's limit are carried byte for byte; above it they
// are refused with both numbers, at once, also where the service's own limit is
// higher than the broker's, and what comes next is carried.
func TestP12LargePayloads(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"default": 0, "above-the-brokers": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, rowOptions{set: func(set *settings.Settings) {
				if limit > 0 {
					set.MaxMessageSize = limit
				}
			}})
			got := make(chan []byte, 2)
			host.Handle(s.reads("t", settings.SubscribeOptions{}), func(_ context.Context, m *host.Message[[]byte]) error {
				got <- bytes.Clone(m.Value)
				return nil
			})
			out := host.To[[]byte](s.Host, s.in.To(s.topic("t")))
			s.Start()
			ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
			defer cancel()
			for _, size := range []int{4 << 20, 6 << 20, 80 << 20} {
				payload := bytes.Repeat([]byte{0, 0xff, 'a', 'b'}, size/4)
				_, err := out.Publish(ctx, payload)
				if size == 4<<20 {
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(<-got, payload) {
						t.Error("4 MiB are not what was published")
					}
					continue
				}
				f, ok := errors.AsType[*core.Fault](err)
				if !ok || f.Code != core.FaultTooLarge {
					t.Errorf("%d bytes: %v", size, err)
				}
				if text := fmt.Sprint(err); !strings.Contains(text, fmt.Sprint(size)) || !strings.Contains(text, "limit") {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
			if _, err := out.Publish(ctx, []byte("small")); err != nil {
				t.Fatal(err)
			}
			if p := <-got; string(p) != "small" {
				t.Errorf("behind them comes %.10q", p)
			}
			s.Cancel()
			s.Ended()
		})
	}
}
