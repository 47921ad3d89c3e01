// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/outside"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// pluginPath builds the plugin.
func pluginPath(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/mqtt/longshore-transport-mqtt")
}

// The cases that a session has to do with, and those that the QoS of what is read
// has to do with.
const (
	ofSessions   = "^(inspect|credit|settle|honesty|publish|request|seek|copy|unsettled|stop|kill|leak)/"
	ofDeliveries = "^(inspect|credit|settle|honesty|seek|copy|unsettled|stop)/"
)

// Sessions that are kept and not, and QoS 0 to 2, with a connection that is cut:
// what is published is read by a client of another make.
func TestConformance(t *testing.T) {
	t.Parallel()
	collect := outside.Collect([]string{programtest.Path(t, "github.com/longshore-go/longshore/internal/mosquitto/longshore-mqtt-outside"), "collect"})
	for _, tt := range []struct {
		name string
		kept bool
		o    settings.SubscribeOptions
		only string // cases; the others are as with the first one
	}{
		{"kept", true, settings.SubscribeOptions{}, ""},
		{"not kept", false, settings.SubscribeOptions{}, ofSessions},
		{"kept, QoS 2", true, settings.SubscribeOptions{QoS: new(2)}, ofDeliveries},
		{"QoS 0", true, settings.SubscribeOptions{QoS: new(0)}, ofDeliveries},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broker := mosquitto.Start(t, mosquitto.Config{Quiet: true})
			cut := proxy.Start(t, broker.Address())
			set := settings.Settings{URL: settings.URL(cut.URL()), ClientID: plugintest.CaseWord}
			if tt.kept {
				set = kept(set)
			}
			connectAs(t, broker.URL(), "echo").responder("echo", echo)
			plugintest.Run(t, plugintest.Subject{
				Path: pluginPath(t), Settings: set, Options: tt.o, Echo: "echo", Wait: servicetest.Limit,
				Collect: func(ctx context.Context, at plugintest.Place, ready func(), got func(core.Message)) error {
					return collect(ctx, conform.Place(at), ready, got)
				},
				Disconnect: func(context.Context, plugintest.Place) error {
					cut.Cut()
					return nil
				},
			}, plugintest.Only(regexp.MustCompile(tt.only)))
		})
	}
}
