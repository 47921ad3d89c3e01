// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// The library's lines are ours at Debug, whatever it takes them for. Its own debug
// lines hold messages, and are none.
func TestLogger(t *testing.T) {
	out := &logged{}
	l := newLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	sub := l.SubLogger(log.Fields{"topic": "t"})
	sub.Info("a", 1)
	sub.Warnf("b %d", 2)
	sub.WithError(errors.New("boom")).Error("c")
	l.WithField("k", "v").Errorf("%s", "d")
	l.WithFields(log.Fields{"x": "y"}).Infof("e")
	l.Warn("f")
	l.Debug("payload")
	l.Debugf("payload %d", 1)
	got := out.String()
	for _, want := range []string{
		`msg=a1 library=pulsar-client-go topic=t as=info`,
		`msg="b 2" library=pulsar-client-go topic=t as=warn`,
		`msg=c library=pulsar-client-go topic=t error=boom as=error`,
		`msg=d library=pulsar-client-go k=v as=error`,
		`msg=e library=pulsar-client-go x=y as=info`,
		`msg=f library=pulsar-client-go as=warn`,
	} {
		if !strings.Contains(got, "level=DEBUG "+want) {
			t.Errorf("there is no line with %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "payload") || strings.Count(got, "\n") != 6 {
		t.Errorf("there are other lines in\n%s", got)
	}
}

// Where nothing is logged at Debug, the library's lines cost no attribute.
func TestLoggerOff(t *testing.T) {
	l := newLogger(slog.New(slog.NewTextHandler(&logged{}, nil)))
	fields := log.Fields{"a": 1, "b": 2}
	if n := testing.AllocsPerRun(100, func() { l.SubLogger(fields) }); n > 1 {
		t.Errorf("a logger that logs nothing allocates %v times", n)
	}
}
