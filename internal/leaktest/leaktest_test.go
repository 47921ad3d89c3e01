// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// TestFind leaves a goroutine that ends behind goleak's own first look, and one
// that does not end.
func TestFind(t *testing.T) {
	others := goleak.IgnoreCurrent()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-end
	}()
	if err := goleak.Find(others); err == nil {
		t.Error("the goroutine is not seen")
	}
	if err := find(0, others); err == nil {
		t.Error("a goroutine that does not end is not told")
	}
	go func() {
		_ = goleak.Find(others) // as long as the first look takes
		close(end)
	}()
	if err := find(patience, others); err != nil {
		t.Errorf("it has ended in time: %v", err)
	}
	<-ended
}
