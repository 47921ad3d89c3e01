// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/handshake"
)

func leashCases() []Case {
	return []Case{
		{
			ID: "process/leash", Section: sectionLeash,
			Claim: "At the end of its standard input the process settles nothing more, removes its folder and exits by itself within two seconds; nothing of it is left.",
			Run:   processLeash,
		},
		{
			ID: "process/stays", Section: sectionLeash,
			Claim: "The process does not exit on its own accord, behind Close either: it waits for the end of its standard input.",
			Run:   processStays,
		},
	}
}

// rejects is a reject for a reason.
func rejects(d *Delivery, reason string) frame.VerdictRun {
	return frame.VerdictRun{First: d.ID, Kind: core.VerdictReject, Reason: reason}
}

// misplaced says what is wrong with the place of a socket.
func (b *bare) misplaced(socket string) string {
	inside, err := filepath.EvalSymlinks(b.socket)
	if err != nil {
		return err.Error()
	}
	at, err := filepath.EvalSymlinks(filepath.Dir(socket))
	switch {
	case err != nil:
		return err.Error()
	case at != inside && !strings.HasPrefix(at, inside+"/"):
		return "it lies outside the folder that PLUGIN_UNIX_SOCKET_DIR names"
	case len(filepath.Base(socket)) > socketName:
		return "its own name is longer than 20 bytes"
	}
	return ""
}

// processLeash drops the leash of a process that only was executed and of one in
// the middle of its work.
func processLeash(t *Trial) {
	b := t.execute(handshake.CookieValue, "1")
	if b.introduction() == nil {
		t.Fatalf("the process announces nothing; %s", b.told())
	}
	b.unleash()

	const messages = 20
	p := t.Connected()
	x := t.traffic(p)
	x.round(messages)
	x.send(messages)
	var open []*Delivery
	if x.sub != nil {
		open = x.sub.Take(messages)
	}
	p.unleash()
	if len(open) > 0 && soon(t.About) {
		t.comesAgain(open, nil)
	}
}

// unleash drops the leash in the middle of whatever the process does, and looks
// for what it leaves.
func (p *Process) unleash() {
	left := append(family(p.PID()), p.PID())
	since := time.Now()
	p.Unleash()
	p.t.gone(left, since)
}

// comesAgain takes in a new process what the former one left unsettled. What is
// barred may not come.
func (t *Trial) comesAgain(open []*Delivery, barred []string) {
	p, s := t.reading()
	for _, d := range s.again(open, barred, "they were settled") {
		if d != nil {
			s.Finish(d)
		}
	}
	s.Barrier()
	s.End()
	p.Close()
}

// processStays looks at a process that has nothing to do any more.
func processStays(t *Trial) {
	p := t.Connected()
	x := t.traffic(p)
	x.round(1)
	x.end()
	p.closing()
	if p.goneWithin(t.Subject.Quiet) {
		t.Errorf("the process exited behind Close (%v) while its leash held: it waits for the end of its standard input", p.proc.Exit())
	}
	p.Unleash()
}
