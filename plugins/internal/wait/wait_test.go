// SPDX-License-Identifier: Apache-2.0

package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/plugins/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !wait.For(t.Context(), time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("waited %v, want one minute", time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		if wait.For(ctx, time.Minute) || time.Since(begun) != time.Second {
			t.Errorf("waited %v, want the second that the context lasts", time.Since(begun))
		}
	})
}
