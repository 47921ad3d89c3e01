// SPDX-License-Identifier: Apache-2.0

package config

// defaults checks what one level of defaults says.
func (c *checker) defaults(path string, d *Defaults) {
	if d != nil {
		c.policy(path, &d.Policy)
	}
}

// policy checks what a subscription or a level of defaults declares.
func (c *checker) policy(path string, p *Policy) {
	if p.DeadLetter != nil {
		c.endpoint(path+".dead_letter.to", p.DeadLetter.To)
	}
	if p.Backoff != nil {
		c.backoff(path+".backoff", p.Backoff)
	}
	if w := path + ".window"; p.Window != nil && !c.has(w+".messages") && !c.has(w+".bytes") {
		c.fail(w, "write messages, bytes or both", "bounds nothing")
	}
	b := p.CircuitBreaker
	if b != nil && b.Pause > 0 && b.Longest > 0 && b.Longest < b.Pause {
		c.fail(path+".circuit_breaker.longest", "write at least "+b.Pause.String(), "is shorter than pause")
	}
	if s := p.Snooze; s != nil && s.Delay > 0 && s.Total > 0 && s.Total < s.Delay {
		c.fail(path+".snooze.total", "write at least "+s.Delay.String(), "is shorter than delay")
	}
}

// fieldsOfBackoff are what each kind of a backoff needs.
var fieldsOfBackoff = map[string][]string{
	BackoffConstant:    {"first"},
	BackoffLinear:      {"first", "max"},
	BackoffExponential: {"first", "max"},
	BackoffDelays:      {"delays"},
}

// backoff checks that a backoff has the fields of its kind and no others.
func (c *checker) backoff(path string, b *Backoff) {
	kind := b.KindOrDefault()
	if b.Kind == "" && (c.has(path+".kind") || c.has(path+".delays")) && b.Delays == nil {
		return // what is wrong with it is told
	}
	needs := fieldsOfBackoff[kind]
	for _, name := range []string{"first", "max", "delays"} {
		needed := false
		for _, n := range needs {
			needed = needed || n == name
		}
		switch given := c.has(path + "." + name); {
		case needed && !given:
			c.fail(path+"."+name, "add it: "+meaning[name], "is missing")
		case !needed && given:
			c.fail(path+"."+name, "remove it, or write another kind", "is of no use with %s", kind)
		}
	}
	if b.First > 0 && b.Max > 0 && b.Max < b.First {
		c.fail(path+".max", "write at least "+b.First.String(), "is shorter than first")
	}
	if kind != BackoffDelays || b.Delays == nil {
		return
	}
	for _, d := range b.Delays {
		if d > 0 {
			return
		}
	}
	c.fail(path+".delays", "list one above 0s, or remove backoff for further attempts at once", "lists no delay")
}

// meaning says what the fields of a backoff are.
var meaning = map[string]string{
	"first": "the wait before the second attempt", "max": "the longest wait", "delays": "the waits one after the other",
}

// snoozes checks that a command whose exit status may put a message off has
// been told for how long.
func (c *checker) snoozes(path string, s *Subscription) {
	if c.file.SnoozeOf(s) != nil || c.has(path+".snooze") {
		return
	}
	said := func(path string, exits map[string]string) {
		for status, means := range exits {
			if at := path + ".exec.on_exit." + status; means == ExitSnooze && !c.told[at] {
				c.told[at] = true
				c.fail(at, "add snooze: {delay: 30s}", "nothing says for how long")
			}
		}
	}
	said(path, s.Exec.OnExit)
	c.file.eachDefaults(s, func(path string, d *Defaults) {
		if d.Exec != nil {
			said(path, d.Exec.OnExit)
		}
	})
}
