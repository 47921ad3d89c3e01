// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/handshake"
)

func processCases() []Case {
	return append([]Case{
		{
			ID: "process/cookie", Section: sectionEnvironment,
			Claim: "Without the cookie the plugin does not serve: it prints a line for people and exits with status 1.",
			Run:   processCookie,
		},
		{
			ID: "process/protocol-older", Section: sectionHandshake,
			Claim: "For a host that speaks an older protocol only the plugin does not serve: it prints a line for people and exits with status 1.",
			Run:   processOlder,
		},
		{
			ID: "process/protocol-newer", Section: sectionHandshake,
			Claim: "To a host that speaks newer protocols as well the plugin announces version 1, on a Unix socket in the host's folder.",
			Run:   processNewer,
		},
		{
			ID: "process/stdout", Section: sectionHandshake,
			Claim: "Nothing is printed to standard output behind the handshake, in a life with deliveries and publishes.",
			Run:   processStdout,
		},
		{
			ID: "process/long-log-line", Section: sectionLog,
			Claim: "Settings, names and reasons of 100 KiB are taken or refused and neither kill nor hang the process; what it logs of them are whole records.",
			Run:   processLong,
		},
		{
			ID: "process/signals", Section: sectionSignals,
			Claim: "INT, TERM, HUP and PIPE to the process group change nothing while the leash holds: deliveries and publishes go on.",
			Run:   processSignals,
		},
		{
			ID: "process/beats", Section: sectionSupervision,
			Claim: "Heartbeats are answered with their numbers while a subscription waits for messages, while calls run and in a burst.",
			Run:   processBeats,
		},
		{
			ID: "process/link", Section: sectionSupervision,
			Claim: "A plugin that says that it reports link states reports that it is connected.",
			Applies: func(a *About) string {
				if !a.Describe.GetLinkStates() {
					return "it reports no link states"
				}
				return ""
			},
			Run: processLink,
		},
		{
			ID: "process/stdio-flags", Section: sectionStdio,
			Claim: "The plugin does not set O_NONBLOCK on the host's standard input and output, which a shell shares.",
			Applies: func(a *About) string {
				if !a.Describe.GetWantsStdio() {
					return "it does not want the host's standard input and output"
				}
				return ""
			},
			Needs: func(*About) string { return procReason() },
			Run:   processStdioFlags,
		},
	}, leashCases()...)
}

// exitLimit is how long a plugin may take to say that it does not serve.
const exitLimit = 5 * time.Second

// processCookie executes the plugin with a wrong cookie and with none.
func processCookie(t *Trial) {
	t.refusesToServe("with a wrong cookie", t.execute("conform", "1"))
	t.refusesToServe("with an empty cookie", t.execute("", "1"))
}

// processOlder executes the plugin as a host that speaks version 0 alone.
func processOlder(t *Trial) {
	t.refusesToServe("for a host that speaks protocol version 0 only", t.execute(handshake.CookieValue, "0"))
}

// refusesToServe waits for a process that must not serve.
func (t *Trial) refusesToServe(executed string, b *bare) {
	if limit := stretched(exitLimit); !b.ended(limit) {
		t.Errorf("executed %s the process does not exit within %v; %s", executed, limit, b.told())
		b.unleash()
		return
	}
	if code := b.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("executed %s the process ends with %s in place of exit status 1; %s", executed, b.how(), b.told())
	}
	stdout, stderr := b.printed()
	if handshakeOf(stdout) != nil {
		t.Errorf("executed %s the process announces itself all the same; %s", executed, b.told())
	}
	switch n := len(stdout) + len(stderr); {
	case n == 0:
		t.Errorf("executed %s the process prints no line for people", executed)
	case n > 1:
		t.Notef("executed %s the process prints %d lines for people; one is enough", executed, n)
	}
}

// processNewer executes the plugin as hosts of later times.
func processNewer(t *Trial) {
	for _, versions := range []string{"1,2", "2,1"} {
		b := t.execute(handshake.CookieValue, versions)
		fields := b.introduction()
		if fields == nil {
			t.Errorf("executed by a host that speaks protocol versions %s the process announces nothing; %s", versions, b.told())
			continue
		}
		for i, want := range []struct{ value, is string }{
			{"1", "the version of the handshake"}, {"1", "the version of the protocol"}, {"unix", "the network"}, {}, {"grpc", "the kind of the connection"}, {"", "the certificate"},
		} {
			if i == 3 || i >= len(fields) && want.value == "" {
				continue
			}
			if i >= len(fields) || fields[i] != want.value {
				t.Errorf("to a host that speaks protocol versions %s the handshake is %q: field %d, %s, has to be %q", versions, strings.Join(fields, "|"), i+1, want.is, want.value)
			}
		}
		if wrong := b.misplaced(fields[3]); wrong != "" {
			t.Errorf("the handshake names the socket %s: %s", fields[3], wrong)
		}
		b.unleash()
	}
}

// processStdout lives a whole life.
func processStdout(t *Trial) {
	const rounds, messages = 3, 20
	defer func() { // however far it came
		if lines := t.log.printed(); len(lines) > 0 {
			t.Errorf("the process prints to standard output behind its handshake, where only the handshake stands: %q", some(lines))
		}
	}()
	p := t.Connected()
	p.LogLevel("debug")
	x := t.traffic(p)
	for range rounds {
		x.round(messages)
	}
	x.end()
	p.Close()
}

// processStdioFlags looks at descriptors 3 and 4 before, in and behind traffic.
func processStdioFlags(t *Trial) {
	look := func(p *Process, when string) {
		for fd, name := range map[int]string{handshake.StdinFD: "input", handshake.StdoutFD: "output"} {
			if set, known := nonblocking(p.PID(), fd); known && set {
				t.Errorf("O_NONBLOCK is set on descriptor %d, the host's standard %s, %s: everybody who shares it sees that", fd, name, when)
			}
		}
	}
	p := t.Start()
	look(p, "behind the start")
	p.Unleash()
	p = t.Connected()
	x := t.traffic(p)
	look(p, "once it is connected")
	x.round(20)
	look(p, "behind traffic")
	x.end()
	p.Close()
}

// processSignals sends each signal in the middle of traffic.
func processSignals(t *Trial) {
	const messages = 20
	p := t.Connected()
	x := t.traffic(p)
	x.round(messages)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		keys := x.send(messages)
		if err := p.signal(s); err != nil {
			t.Fatalf("the suite cannot send %v to the process: %v", s, err)
		}
		if keys = append(keys, x.send(messages)...); x.sub == nil && !p.Beats() {
			t.Errorf("no heartbeat is answered any more behind %v", s)
		}
		x.take(keys)
	}
	if p.goneWithin(t.Subject.Quiet) { // it may be taking its time
		t.Fatalf("a signal ended the process (%v): it ignores INT, TERM, HUP and PIPE", p.proc.Exit())
	}
	x.round(messages)
	x.end()
	p.Close()
}

// signal sends a signal to the process's group; of one that shares the host's,
// to the process.
func (p *Process) signal(s syscall.Signal) error {
	if p.stdio != nil {
		return syscall.Kill(p.PID(), s)
	}
	return syscall.Kill(-p.PID(), s)
}

// processBeats asks for signs of life in every situation.
func processBeats(t *Trial) {
	const messages = 500
	p := t.Configured()
	beats := func(when string) {
		if !p.Beats() {
			t.Fatalf("a heartbeat %s is not answered within %v: a host would take the process for hung and kill it", when, stretched(beatLimit))
		}
	}
	beats("behind Configure")
	p.Inspect(t.Usage())
	var calls sync.WaitGroup
	var err error
	calls.Go(func() {
		ctx, cancel := t.limited()
		defer cancel()
		err = p.connect(ctx)
	})
	beats("while Connect runs")
	if calls.Wait(); err != nil {
		t.Fatalf("Connect: %v", err)
	}
	var opened *Sub
	if t.About.reads() == "" {
		s, err := p.begin(t.registration())
		if err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		beats("while a subscription is opened")
		if !s.until(func() bool { return s.started || s.over }) || !s.started {
			t.Fatalf("Subscribe is not answered with started%s", s.state())
		}
		s.Credit(windowMessages, windowBytes)
		opened = s
		beats("while a subscription waits for messages")
	}
	if opened != nil {
		opened.End()
	}
	x := t.traffic(p)
	x.round(1)
	if x.sub != nil {
		x.sub.Barrier()
	}
	beats("while a subscription has delivered all and waits")
	wait := func() []string { return nil }
	if x.sub != nil {
		wait = t.inject(p, t.Messages(t.feedName(), messages, 0))
	}
	beats("in a burst")
	keys := wait()
	x.take(keys)
	x.end()
	p.watch.mu.Lock()
	if wrong := p.watch.wrong; wrong != "" {
		t.Errorf("a heartbeat is answered with its own number or the newest of several: %s", wrong)
	}
	p.watch.mu.Unlock()
	p.Close()
}

// processLink waits for the first report.
func processLink(t *Trial) {
	p := t.Connected()
	ctx, cancel := t.limited()
	defer cancel()
	up := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		n := len(p.links)
		return n > 0 && p.links[n-1].GetUp()
	}
	if !eventually(ctx, p.change, up) {
		p.mu.Lock()
		reports := fmt.Sprint(p.links)
		p.mu.Unlock()
		t.Errorf("Connect has succeeded, and no link state that is up was reported within %v; reports: %s", t.Subject.Wait, reports)
	}
	p.Close()
}

// longText is longer than any buffer of a line that is not meant for it.
const longText = 100 << 10

// processLong puts long texts everywhere.
func processLong(t *Trial) {
	for _, begins := range []string{`{"@`, `{ "@`, `{"level`, `{"message`} {
		t.log.watch("plugin prints line=" + begins) // a record that could not be read
	}
	long := strings.Repeat("long", longText/len("long"))
	p := t.Start()
	p.LogLevel("debug")
	if closed(t.About.settings().root) {
		settings := apply(t.given(), wrong{make: func(o map[string]any) { o[long] = true }})
		p.refuses(settings, fmt.Sprintf("settings with an unknown field whose name has %d KiB", longText>>10))
	}
	if fault := p.Configure(t.Settings); fault != nil {
		t.Fatalf("Configure refuses the settings that it took before: %v", fault)
	}
	u := t.Usage()
	for _, r := range u.GetRegistrations() {
		r.Name += long
	}
	for _, d := range u.GetDestinations() {
		d.Name += long
	}
	ctx, cancel := t.limited()
	_, err := p.link.Inspect(ctx, u)
	cancel()
	if fault := new(core.Fault); err != nil && !errors.As(err, &fault) {
		t.Fatalf("Inspect of names of %d KiB is answered with %v: they are taken or refused", longText>>10, err)
	}
	p.Inspect(t.Usage())
	p.Connect()
	if t.About.reads() == "" {
		r := t.registration()
		r.Name += long
		s, err := p.open(r)
		switch {
		case p.gone():
			t.Fatalf("a subscription's name of %d KiB ended the process (%v)", longText>>10, p.proc.Exit())
		case err == nil:
			s.End()
		case tooLong(err):
			t.Errorf("a subscription with a name of %d KiB is neither opened nor refused within %v", longText>>10, t.Subject.Wait)
		}
	}
	x := t.traffic(p)
	if t.About.Publishing != nil {
		ms := t.Messages(t.Destination()+long, 1, 0)
		p.Publisher().Send(Outgoing(ms...)...)
	}
	keys := x.send(2)
	if x.sub != nil {
		first, more := x.sub.TakeKeys(keys)
		if d := first[keys[0]]; canReject(d.Caps) {
			x.sub.Results(rejects(d, long))
			delete(first, keys[0])
		}
		for _, d := range first {
			more = append(more, d)
		}
		x.sub.Finish(more...)
	}
	x.round(2)
	x.end()
	p.Close()
	if t.log.told() {
		t.Errorf("a line of the log begins like a record and is none: a record is one line of JSON")
	}
}

// soon reports whether what is unsettled comes again soon enough for cases that
// look at something else.
func soon(a *About) bool {
	const part, most = 4, 5 * time.Second // of the subject's Wait
	return a.All(func(c core.Capabilities) bool {
		return returnsAtAll(c) && (c.Unsettled != core.UnsettledOnTimeout || c.MaxHold <= min(a.Subject.Wait/part, most))
	})
}
