// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// mqttClient is the name of the services' sessions.
const mqttClient = "svc"

func mqttPlugin(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/mqtt/longshore-transport-mqtt")
}

// keptAt are settings with a session that the server keeps.
func keptAt(url string) settings.Settings {
	return settings.Settings{
		URL: settings.URL(url), ClientID: mqttClient,
		CleanStart: new(false), SessionExpiry: core.Duration(time.Hour),
	}
}

// mqtt attaches the MQTT transport.
func (s *service) mqtt(name string, set settings.Settings) *host.Endpoint {
	s.t.Helper()
	return s.Endpoint(name, host.Plugin{Name: "mqtt", Path: mqttPlugin(s.t)}, set)
}

// quality are the options of a subscription of a QoS.
func quality(qos int) host.SubscriptionOption {
	return host.Options(settings.SubscribeOptions{QoS: new(qos)})
}
