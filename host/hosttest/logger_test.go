// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// logged is a test whose log is kept.
type logged struct {
	testing.TB
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Output() io.Writer { return l }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// A crash is logged as one, and the stack of a panic has lines.
func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logged{TB: t}
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(log))
		host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			panic("a bug")
		}, host.OnPanic(host.AsDrop))
		s := hosttest.Start(t, h)
		b.Deliver("orders", hosttest.Text("x"))
		s.Wait()
		b.Crash(t, "in")
		s.Ready()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		text := log.text.String()
		has(t, text, `level=ERROR msg="handler panicked" endpoint=in`, "    stack:\n        goroutine ", "        \t", "logger_test.go:")
		for _, not := range []string{`\n`, "pid=", "closed at its limit"} {
			if strings.Contains(text, not) {
				t.Errorf("%q is in:\n%s", not, text)
			}
		}
		if !strings.HasSuffix(text, "\n") || strings.Contains(text, "\n\n") {
			t.Errorf("lines that are none in:\n%s", text)
		}
	})
}

func TestFailuresInWords(t *testing.T) {
	got := fmt.Sprint(hosttest.Unavailable, hosttest.Refused, hosttest.Unanswered, hosttest.StoredUnanswered, hosttest.PublishFailure(9))
	if want := "unavailable refused unanswered stored, unanswered publish failure 9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
