// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// broker keeps what was acked of a batch.
var broker = pulsarbroker.Shared{Config: pulsarbroker.Config{Lines: []string{"acknowledgmentAtBatchIndexLevelEnabled=true"}}}

func TestMain(m *testing.M) {
	// What the library leaves behind when it closes.
	broker.Main(m, goleak.IgnoreTopFunction("github.com/apache/pulsar-client-go/pulsar.(*partitionProducer).runEventsLoop.func1"))
}
