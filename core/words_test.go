// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/longshore-go/longshore/core"
)

// Every enum's words are different, hyphenated, and read back as themselves.
func TestWords(t *testing.T) {
	testWords(t, core.AckMode(0), 3)
	testWords(t, core.RequeueMode(0), 3)
	testWords(t, core.RejectMode(0), 3)
	testWords(t, core.CountMode(0), 2)
	testWords(t, core.Unsettled(0), 4)
	testWords(t, core.OrderMode(0), 3)
	testWords(t, core.Confirm(0), 4)
	testWords(t, core.Retention(0), 3)
	testWords(t, core.HeaderMode(0), 4)
	testWords(t, core.OutcomeKind(0), int(core.OutcomeFailFast)+1)
	testWords(t, core.Cause(0), int(core.CauseReplyFailed)+1)
	testWords(t, core.Void(0), int(core.VoidGone)+1)
	testWords(t, core.VerdictKind(0), int(core.VerdictExtend)+1)
	testWords(t, core.FaultCode(0), int(core.FaultInternal)+1)
	testWords(t, core.RouteState(0), int(core.RouteRefused)+1)
	testWords(t, core.Action(0), int(core.ActStop)+1)
	testWords(t, core.Target(0), int(core.TargetDead)+1)
	testWords(t, core.LogLevel(0), int(core.LevelError)+1)
	testWords(t, core.LogCode(0), int(core.LogUnrouted)+1)
	testWords(t, core.Result(0), int(core.ResultCut)+1)
	testWords(t, core.Party(0), int(core.PartyTargetBroker)+1)
}

type anyEnum interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}

var wordRE = regexp.MustCompile(`^([a-z]+(-[a-z]+)*|L-[A-Z]+(-[A-Z]+)*)$`)

func testWords[E anyEnum](t *testing.T, _ E, n int) {
	t.Helper()
	seen := map[string]bool{}
	for i := range n {
		e := E(i)
		text, err := e.MarshalText()
		if err != nil {
			t.Errorf("%T(%d): %v", e, i, err)
		}
		if string(text) != e.String() || !wordRE.Match(text) || seen[string(text)] {
			t.Errorf("%T(%d) is %q as text and %q as string, want one word of its own", e, i, text, e)
		}
		seen[string(text)] = true
		var back E
		if err := any(&back).(encoding.TextUnmarshaler).UnmarshalText(text); err != nil || back != e {
			t.Errorf("%q reads back as %v, %v", text, back, err)
		}
	}
	var unknown *core.WordError
	if _, err := E(n).MarshalText(); !errors.As(err, &unknown) {
		t.Errorf("%T(%d) marshals: %v, want a *WordError; is a word missing here?", E(n), n, err)
	}
	var e E
	if err := any(&e).(encoding.TextUnmarshaler).UnmarshalText([]byte("no such word")); !errors.As(err, &unknown) || len(unknown.Words) != n {
		t.Errorf("%T reads nonsense: %v, want a *WordError with its %d words", e, err, n)
	}
}

func TestHeadersPrintAsText(t *testing.T) {
	hs := core.Headers{{Name: "a", Value: []byte("1")}, {Name: "B", Value: []byte("x \"y\"\x00")}}
	if got := fmt.Sprint(hs); got != `[a="1" B="x \"y\"\x00"]` {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(core.NoteCap | core.NoteDelay); got != "cap|delay" {
		t.Errorf("got %s", got)
	}
}
