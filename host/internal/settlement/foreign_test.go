// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// enormous is a text that no log line and no error may carry whole.
var enormous = strings.Repeat("two\nlines é ", 1<<16)

// shown fails for a text that is longer than most or on several lines.
func shown(t *testing.T, what, text string, most int) {
	t.Helper()
	if text == "" || len(text) > most || strings.ContainsAny(text, "\n\r") || !utf8.ValidString(text) {
		t.Errorf("%s has %d bytes on %d lines, want one line of at most %d", what, len(text), 1+strings.Count(text, "\n"), most)
	}
}

func TestOneLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"short":             {"no connection", "no connection"},
		"several lines":     {"a\r\nb\u2028c\u0085", "a  b c "},
		"terminal":          {"\x1b[2Jx", " [2Jx"},
		"long":              {strings.Repeat("a", 20), strings.Repeat("a", 13)},
		"between two bytes": {"aaaaaaaaaaaaé", "aaaaaaaaaaaa"},
		"no UTF-8":          {"a\xff\xff\xff\xff\xff", "a\ufffd\ufffd\ufffd\ufffd"},
		"bytes that go on":  {strings.Repeat("\x80", 20), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := oneLine(tt.text, 13); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestForeignFault(t *testing.T) {
	small := &core.Fault{Message: "no", Diagnostics: []core.Diagnostic{{Path: "a", Message: "b", Fix: "c"}}}
	if foreignFault(small) != small || foreignFault(nil) != nil {
		t.Error("a small fault is not left as it is")
	}
	large := &core.Fault{Code: core.FaultDenied, Transient: true, RetryAfter: 3, Message: enormous}
	for range 100 {
		large.Diagnostics = append(large.Diagnostics, core.Diagnostic{Path: enormous, Message: enormous, Fix: enormous})
	}
	got := foreignFault(large)
	if got.Code != large.Code || !got.Transient || got.RetryAfter != 3 || len(got.Diagnostics) != shownDiagnostics {
		t.Errorf("the fault became another one: code %v, %d diagnostics", got.Code, len(got.Diagnostics))
	}
	shown(t, "message", got.Message, shownFault)
	for _, d := range got.Diagnostics {
		shown(t, "path", d.Path, shownText)
		shown(t, "diagnostic", d.Message, shownFault)
		shown(t, "fix", d.Fix, shownFault)
	}
	if large.Message != enormous || large.Diagnostics[0].Path != enormous {
		t.Error("the plugin's fault was changed")
	}
	var f *core.Fault
	if err := foreignError(fmt.Errorf("receive: %w", large)); !errors.As(err, &f) || len(err.Error()) > 4*shownFault {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

// What a plugin says is cut before it gets into a line or an error.
func TestForeignTexts(t *testing.T) { // S-STD-09
	fault := &core.Fault{Code: core.FaultDenied, Message: enormous}
	wire := &transportpb.Fault{Code: transportpb.FaultCode(core.FaultInvalid), Message: enormous}
	refused := func(*frame.Outgoing, int) (frame.Receipt, bool) {
		return frame.Receipt{Status: frame.ReceiptRefused, Fault: fault}, true
	}
	one := func(b *bench) { b.p.deliver(message("x")) }
	tests := map[string]struct {
		caps   core.Capabilities
		said   core.Outcome
		plugin func(p *plugin)
		do     func(b *bench)
		code   string
	}{
		"report": {kindA, retry(), nil, func(b *bench) {
			b.p.say(frame.SubscribeResponse{Report: &transportpb.Report{Fault: wire, Position: enormous}})
		}, "L-STREAM"},
		"receipt":       {kindM, retry(), func(p *plugin) { p.receipt = refused }, one, "L-COPY"},
		"receipt, lost": {kindU, later(1), func(p *plugin) { p.receipt = refused }, one, "L-LOST"},
		"requeue": {kindC, later(time.Millisecond), func(p *plugin) {
			p.answer = func(frame.VerdictRun) (frame.SettleStatus, *core.Fault) { return frame.SettleFailed, fault }
		}, one, "L-NACK"},
		"ack": {kindA, core.Outcome{Kind: core.OutcomeAck}, func(p *plugin) {
			p.answer = func(frame.VerdictRun) (frame.SettleStatus, *core.Fault) { return frame.SettleFailed, fault }
		}, one, "L-UNS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, says(tt.said), func(s *setup) {
					s.plugin = tt.plugin
					s.o.Policy.MaxAttempts = 3
				})
				synctest.Wait()
				tt.do(b)
				time.Sleep(time.Second)
				synctest.Wait()
				lines := b.logs.lines(tt.code)
				if len(lines) == 0 {
					t.Fatalf("no such line: %d others", len(b.logs.lines("")))
				}
				shown(t, "error", lines[0]["error"].(string), shownFault)
				if p, ok := lines[0]["position"].(string); ok {
					shown(t, "position", p, shownFault)
				}
			})
		})
	}
}

// A subscription's last words, the position of a delivery and a receipt go to
// the host's errors.
func TestForeignTextsOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks, func(s *setup) {
			s.plugin = func(p *plugin) {
				p.receipt = func(*frame.Outgoing, int) (frame.Receipt, bool) {
					return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: enormous}}, true
				}
			}
		})
		synctest.Wait()
		m := message("x")
		m.Position = []byte(strings.Repeat("p", 1<<16))
		b.p.deliver(m)
		b.p.say(frame.SubscribeResponse{Ended: &transportpb.Ended{Fault: &transportpb.Fault{Message: enormous}}})
		synctest.Wait()
		s := b.lane.State()
		shown(t, "position", s.Position, shownFault)
		shown(t, "end", s.Fault.Error(), shownFault)
		r, err := b.box.Publish(t.Context(), outgoing("x"))
		if err != nil {
			t.Fatal(err)
		}
		shown(t, "receipt", r.Fault.Error(), shownFault)
	})
}

// A transport's word on a message that it could not read is a handler's error.
func TestForeignTextsOfDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(d *Delivery) Said {
			return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseUndecodable}, Err: d.Undecodable}
		})
		synctest.Wait()
		m := message("x")
		m.Undecodable = &core.Fault{Code: core.FaultInvalid, Message: strings.Repeat("x\n", 1<<12)}
		b.p.deliver(m)
		synctest.Wait()
		lines := b.logs.lines("L-DEC")
		if len(lines) != 1 {
			t.Fatalf("lines %v", lines)
		}
		shown(t, "error", lines[0]["error"].(string), shownFault)
	})
}
