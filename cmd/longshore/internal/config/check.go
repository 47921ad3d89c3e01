// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-go/longshore/internal/spelling"
)

// checker finds what is wrong between fields.
type checker struct {
	file     *File
	problems []Problem
	told     map[string]bool // paths of defaults that are wrong for several subscriptions
}

// check returns what is wrong between the fields of f. Fields that could not
// be decoded are zero; nothing is said of them twice.
func check(f *File) []Problem {
	c := &checker{file: f, told: map[string]bool{}}
	c.endpoints()
	c.defaults("defaults", f.Defaults)
	for _, name := range slices.Sorted(maps.Keys(f.Endpoints)) {
		c.defaults("endpoints."+name+".defaults", f.Endpoints[name].Defaults)
	}
	for i, s := range f.Subscriptions {
		if s != nil {
			c.subscription(fmt.Sprintf("subscriptions[%d]", i), s)
		}
	}
	return c.problems
}

// fail notes a problem at path.
func (c *checker) fail(path, fix, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Position: c.file.At(path), Path: path, Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// endpoints checks that there is something to attach, and one standard input
// at most.
func (c *checker) endpoints() {
	if c.file.Endpoints != nil && len(c.file.Endpoints) == 0 {
		c.fail("endpoints", "add one: name: {transport: pipe, stdio: true}", "is empty")
	}
	first := ""
	for _, name := range slices.Sorted(maps.Keys(c.file.Endpoints)) {
		if !c.file.Endpoints[name].Stdio {
			continue
		}
		if first != "" {
			c.fail("endpoints."+name+".stdio", "set it on one endpoint only", "standard input and output belong to endpoint %s already", first)
			continue
		}
		first = name
	}
}

// subscription checks one subscription.
func (c *checker) subscription(path string, s *Subscription) {
	c.endpoint(path+".from", s.From)
	if (s.From != "" || s.Name != "") && !c.has(path+".forward") && !c.has(path+".exec") {
		c.fail(path, "add forward, exec or both", "nothing is done with its messages")
	}
	if s.Forward != nil {
		c.endpoint(path+".forward.to", s.Forward.To)
	}
	if s.RetryTo != nil {
		c.endpoint(path+".retry_to.to", s.RetryTo.To)
	}
	c.policy(path, &s.Policy)
	c.exec(path, s)
}

// exec checks a subscription's command.
func (c *checker) exec(path string, s *Subscription) {
	if s.Exec == nil {
		return
	}
	if s.Exec.TrimNewline && s.Forward == nil && !c.has(path+".forward") {
		c.fail(path+".exec.trim_newline", "add forward, or remove it", "the command's output is not a new payload here")
	}
	c.snoozes(path, s)
}

// endpoint checks a reference to an endpoint.
func (c *checker) endpoint(path, name string) {
	if name == "" || c.file.Endpoints[name] != nil || c.has("endpoints."+name) {
		return
	}
	known := slices.Sorted(maps.Keys(c.file.Endpoints))
	fix := "add it to endpoints"
	if len(known) > 0 {
		fix += ", or write " + oneOf(known)
	}
	if s := spelling.Nearest(name, known); s != "" {
		fix = "did you mean " + s + "?"
	}
	c.fail(path, fix, "there is no endpoint %q", name)
}

// has reports whether the file holds the path, right or wrong.
func (c *checker) has(path string) bool { return c.file.Has(path) }
