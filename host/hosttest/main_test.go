// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// failing is a test that takes note of its failures.
type failing struct {
	testing.TB
	text     []string
	cleanups []func()
}

func (f *failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) {
	f.text = append(f.text, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

func (f *failing) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

// fails runs what must fail a test, its cleanup included, and returns what it
// failed with.
func fails(t *testing.T, test func(tb testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(f) {
				panic(r)
			}
		}()
		test(f)
	}()
	for _, c := range f.cleanups {
		c()
	}
	if len(f.text) == 0 {
		t.Fatal("it did not fail")
	}
	return strings.Join(f.text, "\n")
}

// has asserts that a text holds all the words.
func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

func acks(context.Context, *host.Message[[]byte]) error { return nil }
