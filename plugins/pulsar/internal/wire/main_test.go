// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// broker keeps what was acked of a batch.
var broker = pulsarbroker.Shared{Config: pulsarbroker.Config{Lines: []string{"acknowledgmentAtBatchIndexLevelEnabled=true"}}}

func TestMain(m *testing.M) { broker.Main(m) }
