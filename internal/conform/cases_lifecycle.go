// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func lifecycleCases() []Case {
	return append([]Case{
		{
			ID: "describe/stable", Section: sectionCalls,
			Claim: "Describe answers the same at any time: before settings, after them, connected and closed, and in another process.",
			Run:   describeStable,
		},
		{
			ID: "describe/valid", Section: sectionCalls,
			Claim: "Describe answers a version, schemas that can be read, and ceilings that do not contradict themselves.",
			Run:   describeValid,
		},
		{
			ID: "setup/no-io", Section: sectionCalls,
			Claim: "Describe, Configure and Inspect open no socket and no file, start no process, and answer within a second each.",
			Needs: func(*About) string { return procReason() },
			Run:   setupNoIO,
		},
		{
			ID: "setup/order", Section: sectionCalls,
			Claim: "A call out of order is answered with a fault that names what is missing, a second one with CONFLICT, one behind Close with CLOSED.",
			Run:   setupOrder,
		},
	}, inspectCases()...)
}

// describe asks Describe again.
func (p *Process) describe() *transportpb.DescribeResponse {
	ctx, cancel := p.t.limited()
	defer cancel()
	r, err := p.link.Describe(ctx, &transportpb.DescribeRequest{Host: "longshore conform"})
	if err != nil {
		p.t.Fatalf("Describe: %v", err)
	}
	return r
}

// describeStable compares what Describe says with what it said to the suite.
func describeStable(t *Trial) {
	same := func(when string, r *transportpb.DescribeResponse) {
		if !proto.Equal(r, t.About.Describe) {
			t.Errorf("Describe answers something else %s: %s", when, difference(r, t.About.Describe))
		}
	}
	p := t.Start()
	same("in another process", p.Description())
	same("when it is asked again", p.describe())
	if fault := p.Configure(t.Settings); fault != nil {
		t.Fatalf("Configure refuses the settings that it took before: %v", fault)
	}
	same("once there are settings", p.describe())
	p.Inspect(t.Usage())
	p.Connect()
	same("once it is connected", p.describe())
	p.closing()
	same("behind Close", p.describe())
	p.Unleash()
}

// difference names the fields in which two messages differ.
func difference(got, want proto.Message) string {
	fields := func(m proto.Message) map[string]json.RawMessage {
		all := map[string]json.RawMessage{}
		raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err == nil {
			_ = json.Unmarshal(raw, &all) // it was just made
		}
		return all
	}
	a, b := fields(got), fields(want)
	var names []string
	for name := range a {
		if string(a[name]) != string(b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// describeValid looks at everything that Describe says.
func describeValid(t *Trial) {
	d := t.Start().Description()
	if d.GetVersion() == "" {
		t.Errorf("Describe answers no version")
	}
	if d.GetRestart() != transportpb.RestartMode_RESTART_MODE_UNSPECIFIED && d.GetRestart() != transportpb.RestartMode_RESTART_MODE_NEVER {
		t.Errorf("Describe answers the restart mode %d, which protocol version 1 does not have", d.GetRestart())
	}
	for _, s := range []struct {
		of     string
		schema []byte
	}{
		{"settings_schema", d.GetSettingsSchema()}, {"subscription_schema", d.GetSubscriptionSchema()}, {"publish_schema", d.GetPublishSchema()},
	} {
		if err := checkSchema(s.schema); err != nil {
			t.Errorf("%s of Describe: %v", s.of, err)
		}
	}
	if len(d.GetCeilings()) == 0 && len(t.About.Profiles) > 0 {
		t.Errorf("Describe names no ceilings, and a subscription can be opened: each capability set lies within one of them")
	}
	for i, c := range convert.ToProfiles(d.GetCeilings()) {
		if err := c.Valid(); err != nil {
			t.Errorf("ceilings[%d] of Describe contradicts itself: %v", i, err)
		}
	}
	if wrong := badPublishing(d.GetPublishing()); wrong != "" {
		t.Errorf("publishing of Describe: %s", wrong)
	}
}

// checkSchema checks that a schema can be read and is one of an object.
func checkSchema(schema []byte) error {
	if len(schema) == 0 {
		return nil
	}
	var is struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(schema, &is); err != nil {
		return err
	}
	if is.Type != "object" {
		return errors.New(`its "type" is not "object"`)
	}
	_, err := schemacheck.Check(schema, []byte("{}"))
	var compile *jsonschema.SchemaValidationError
	if errors.As(err, &compile) {
		return compile
	}
	return err
}

// badPublishing says what contradicts itself in what a destination can do.
func badPublishing(p *transportpb.Publishing) string {
	switch {
	case p.GetMaxDelay() < 0:
		return "max_delay is negative"
	case p.GetMaxBytes() < 0:
		return "max_bytes is negative"
	case p.GetMaxHeaders() < 0:
		return "max_headers is negative"
	case p.GetConfirms() < 0 || p.GetConfirms() > transportpb.Confirm_CONFIRM_STORED:
		return "confirms has a value that protocol version 1 does not have"
	case p.GetRetains() < 0 || p.GetRetains() > transportpb.Retention_RETENTION_TRANSPORT:
		return "retains has a value that protocol version 1 does not have"
	case p.GetHeaders() < 0 || p.GetHeaders() > transportpb.HeaderMode_HEADER_MODE_ENVELOPED:
		return "headers has a value that protocol version 1 does not have"
	}
	return ""
}

const (
	// quickLimit is how long calls without I/O may take on a machine that does
	// something else as well, quickTries how often each may try.
	quickLimit = time.Second
	quickTries = 3
)

// setupNoIO compares what the process holds before and after the calls, and
// counts sockets and children while they run.
func setupNoIO(t *Trial) {
	p := t.Start()
	before := held(p.PID())
	stop, sampled := make(chan struct{}), make(chan holding)
	go func() { sampled <- mostHeld(p.PID(), stop) }()
	slow := map[string]time.Duration{}
	timed := func(call string, f func()) {
		begun := time.Now()
		f()
		if took := time.Since(begun); slow[call] == 0 || took < slow[call] {
			slow[call] = took
		}
	}
	for range quickTries {
		timed("Describe", func() { p.describe() })
	}
	timed("Configure", func() {
		if fault := p.Configure(t.Settings); fault != nil {
			t.Errorf("Configure refuses the settings that it took before: %v", fault)
		}
	})
	if !t.Failed() {
		for range quickTries {
			timed("Inspect", func() { p.Inspect(t.Usage()) })
		}
	}
	close(stop)
	most := <-sampled
	after := held(p.PID())
	if slow["Configure"] > quickLimit { // it comes once a process
		for range quickTries - 1 {
			again := t.Start()
			timed("Configure", func() { _ = again.Configure(t.Settings) }) // only its time counts
			again.Unleash()
		}
	}
	for _, call := range []string{"Describe", "Configure", "Inspect"} {
		if slow[call] > quickLimit {
			t.Errorf("%s took %v at best: it does no I/O and is answered at once", call, slow[call].Round(time.Millisecond))
		}
	}
	if most.sockets = max(most.sockets, after.sockets); most.sockets > before.sockets {
		t.Errorf("the process had %d sockets before the calls and up to %d while they ran: they do no I/O", before.sockets, most.sockets)
	}
	if files := added(before.files, after.files); len(files) > 0 {
		t.Errorf("the process has files open behind the calls that it had not before: %s", some(files))
	}
	if n := max(len(most.children), len(after.children)); n > len(before.children) {
		t.Errorf("the process had %d children before the calls and up to %d while they ran", len(before.children), n)
	}
	p.Unleash()
}

// mostHeld looks at a process until stop and returns the most sockets and
// children that it had.
func mostHeld(pid int, stop <-chan struct{}) holding {
	const every = time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	var most holding
	for {
		h := held(pid)
		most.sockets = max(most.sockets, h.sockets)
		if len(h.children) > len(most.children) {
			most.children = h.children
		}
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}

// added returns what is among now and was not among before.
func added(before, now []string) []string {
	had := map[string]int{}
	for _, f := range before {
		had[f]++
	}
	var more []string
	for _, f := range now {
		if had[f]--; had[f] < 0 {
			more = append(more, f)
		}
	}
	return more
}
