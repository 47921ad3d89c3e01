// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// broker is one for all tests of the package; each has topics of its own.
var broker pulsarbroker.Shared

func TestMain(m *testing.M) { broker.Main(m) }

// nowhere are settings of an endpoint that is not connected.
func nowhere() settings.Settings {
	return settings.Settings{URL: "pulsar://127.0.0.1:1", DefaultSubscription: "shop"}
}

// configure configures an endpoint that logs nowhere.
func configure(t testing.TB, set settings.Settings) pluginapi.Endpoint {
	t.Helper()
	return servicetest.Configure(t, pulsar.New(), set, nil, nil)
}

// registration is one with options.
func registration(t testing.TB, name string, o settings.SubscribeOptions) pluginapi.Registration {
	t.Helper()
	options, err := pluginapi.EncodeOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	return pluginapi.Registration{Name: name, Options: options}
}

// usage is that of a service with these subscriptions.
func usage(rs ...pluginapi.Registration) pluginapi.Usage {
	for i := range rs {
		rs[i].ID = uint32(i)
	}
	return pluginapi.Usage{Registrations: rs}
}

// finds says what is wrong with findings that should be one which names all
// words.
func finds(got []pluginapi.Finding, warning bool, words string) string {
	if len(got) != 1 || got[0].Warning != warning || got[0].Fix == "" {
		return fmt.Sprintf("got %+v", got)
	}
	for w := range strings.SplitSeq(words, "; ") {
		if !strings.Contains(got[0].Option+" "+got[0].Message+" "+got[0].Fix, w) {
			return fmt.Sprintf("got %+v, which lacks %q", got[0], w)
		}
	}
	return ""
}
