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
		`msg=a1 topic=t library=pulsar-client-go as=info`,
		`msg="b 2" topic=t library=pulsar-client-go as=warn`,
		`msg=c topic=t error=boom library=pulsar-client-go as=error`,
		`msg=d k=v library=pulsar-client-go as=error`,
		`msg=e x=y library=pulsar-client-go as=info`,
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

// That the library has acked what it cannot read is a warning whatever is logged, one
// a second at most.
func TestLoggerOfLosses(t *testing.T) {
	out := &logged{}
	l := newLogger(slog.New(slog.NewTextHandler(out, nil))).SubLogger(log.Fields{"topic": "t"})
	l.Error("other")
	for range 100 {
		l.WithFields(log.Fields{"msgID": "9:1", fieldCorrupted: "ChecksumMismatch"}).Error("Discarding corrupted message")
	}
	got := out.String()
	if strings.Count(got, "\n") != 1 {
		t.Fatalf("want one line; got\n%s", got)
	}
	for _, want := range []string{"level=WARN", "message lost", "topic=t", "msgID=9:1", "validationError=ChecksumMismatch", "lost=1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
