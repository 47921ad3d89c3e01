// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// BenchmarkReplay replays a file of small records, with a group and everything
// acked, and without.
func BenchmarkReplay(b *testing.B) {
	for name, o := range map[string]settings.Subscription{
		"plain": {Replay: true},
		"group": {Replay: true, Group: "bench"},
	} {
		b.Run(name, func(b *testing.B) { benchmarkReplay(b, o) })
	}
}

func benchmarkReplay(b *testing.B, o settings.Subscription) {
	const records = 100_000
	raw, err := pluginapi.EncodeSettings(settings.Settings{Path: b.TempDir() + "/orders.ss"})
	if err != nil {
		b.Fatal(err)
	}
	endpoint, err := file.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions(raw), Endpoint: "in"})
	if err != nil {
		b.Fatal(err)
	}
	endpoint.Inspect(writes("orders"))
	conn, err := endpoint.Connect(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	msgs := make([]pluginapi.Outgoing, records)
	for i := range msgs {
		msgs[i] = servicetest.Message("orders", `{"id":7,"amount":12.5,"customer":"acme"}`)
	}
	conn.Publish(b.Context(), msgs, func(int, pluginapi.Receipt) {})
	options, err := pluginapi.EncodeOptions(o)
	if err != nil {
		b.Fatal(err)
	}
	sub, err := conn.Subscribe(b.Context(), pluginapi.Registration{Name: "orders", Options: options})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close(b.Context())
	var vs []pluginapi.Verdict
	b.ReportAllocs()
	for b.Loop() {
		if err := sub.(pluginapi.Seeker).Seek(b.Context(), pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < records; {
			got, err := sub.Receive(b.Context(), servicetest.Plenty)
			if err != nil {
				b.Fatal(err)
			}
			n += len(got.Deliveries)
			if o.Group == "" {
				continue
			}
			vs = vs[:0]
			for _, d := range got.Deliveries {
				vs = append(vs, pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck})
			}
			sub.Settle(b.Context(), vs)
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}
