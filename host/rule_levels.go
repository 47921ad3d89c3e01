// SPDX-License-Identifier: Apache-2.0

package host

// contradictions are pairs of rules that exclude each other.
var contradictions = [...]struct{ a, b, fix string }{
	{"RetryTo", "RetryToFunc", "keep one of them"},
	{"ByKey", "ByKeyFunc", "keep one of them"},
}

// adds reports whether a rule adds to what the levels around it declare, instead
// of replacing it. Such a rule's set appends to what is there.
func adds(name string) bool { return name == "OnError" || name == "Middleware" }

// WithDefaults gives rules that hold for every subscription of the host, unless
// [Endpoint.Defaults] or its own registration says otherwise: a rule of the same
// name, or one that contradicts it, takes its place. [OnError] and [Middleware]
// add up instead: the host's middleware is outermost, the registration's error
// matches are asked first. [NoDefaults] leaves them out. A rule that is nothing to
// a kind of handler, as [ReplyTo] to [Handle], is not used there.
func WithDefaults(rules ...Rule) Option {
	return Option{"WithDefaults", caller(), false, func(o *options) *complaint {
		o.defaults = rules
		return nil
	}}
}

// Defaults gives rules that hold for every subscription of the endpoint, those
// that are declared already included, as [WithDefaults] does for the host: they
// stand above the host's and below a registration's own. What is given by several
// calls counts as given together. It panics after Run was called.
func (e *Endpoint) Defaults(rules ...Rule) {
	e.made("Endpoint.Defaults")
	e.defaults = append(e.defaults, rules...)
}

// NoDefaults leaves the rules of [WithDefaults] and [Endpoint.Defaults] out of a
// registration; as a rule of Endpoint.Defaults it leaves out the host's.
func NoDefaults() Rule {
	return Rule{"NoDefaults", caller(), func(*ruleSet) *complaint { return nil }}
}

// resolve applies a registration's own rules on top of defaults, the outermost
// first, and says what is wrong with its own. fits says of a default whether it
// is anything to the kind of handler; nil = all are.
func resolve(own []Rule, fits func(Rule) bool, defaults ...[]Rule) (ruleSet, []Finding) {
	set := ruleSet{
		panics: AsRetry, undecodable: AsDrop, snoozes: defaultSnoozes, snoozedIn: defaultSnoozedIn,
		given: make(map[string]place, len(own)), defaulted: make(map[string]bool),
	}
	for i, level := range defaults {
		inner := append(defaults[i+1:len(defaults):len(defaults)], own)
		set.level(level, func(r Rule) bool {
			if overridden(r.name, inner) || r.name == "NoDefaults" || fits != nil && !fits(r) {
				return false
			}
			set.defaulted[r.name] = true
			return true
		})
	}
	found := set.level(own, func(r Rule) bool {
		delete(set.defaulted, r.name)
		return true
	})
	return set, found
}

// overridden reports whether a rule of one of the inner levels stands above the
// one with this name.
func overridden(name string, inner [][]Rule) bool {
	for _, level := range inner {
		for _, r := range level {
			switch {
			case r.set == nil:
			case r.name == "NoDefaults", r.name == name && !adds(name):
				return true
			}
			for _, c := range contradictions {
				if c.a == name && c.b == r.name || c.b == name && c.a == r.name {
					return true
				}
			}
		}
	}
	return false
}

// level applies the rules that were given together, those that are to be, and
// says what is wrong with them.
func (s *ruleSet) level(rules []Rule, use func(Rule) bool) []Finding {
	var found []Finding
	here := make(map[string]place, len(rules))
	outer := s.errors
	s.errors = nil
	for _, r := range rules {
		if r.set == nil || !use(r) {
			continue
		}
		if first, twice := here[r.name]; twice && r.name != "OnError" {
			found = append(found, Finding{
				Option: r.name, Message: "given twice", Fix: "keep one of them", Places: places(first, r.place),
			})
			continue
		}
		here[r.name], s.given[r.name] = r.place, r.place
		if c := r.set(s); c != nil {
			found = append(found, Finding{Option: r.name, Message: c.message, Fix: c.fix, Places: places(r.place)})
		}
	}
	found = append(found, sameErrors(s.errors)...)
	s.errors = append(s.errors, outer...)
	for _, c := range contradictions {
		a, hasA := here[c.a]
		b, hasB := here[c.b]
		if hasA && hasB {
			found = append(found, Finding{
				Option: c.a, Message: "contradicts " + c.b, Fix: c.fix, Places: places(a, b),
			})
		}
	}
	return found
}

// declare puts the defaults under every registration's rules, once after the last
// thing that was registered, and returns what is wrong with them: a run that
// serves reads these rules.
func (h *Host) declare() []Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.declaredAt == h.registered && h.declaredAt > 0 {
		return h.undeclared
	}
	h.declaredAt = h.registered
	found := wrongDefaults(h.options.defaults, "")
	for _, r := range h.options.defaults {
		if r.set != nil && r.name == "NoDefaults" {
			found = append(found, Finding{
				Option: r.name, Message: "there are no defaults above the host's", Fix: "leave it out", Places: places(r.place),
			})
		}
	}
	for _, e := range h.endpoints {
		found = append(found, wrongDefaults(e.defaults, e.name)...)
		for _, s := range e.subs {
			if s.handled != nil {
				found = append(found, s.handled.declare(s, h.options.defaults, e.defaults)...)
			}
		}
	}
	h.undeclared = found
	return found
}

// wrongDefaults is what is wrong with the defaults of a host or an endpoint by
// themselves.
func wrongDefaults(rules []Rule, endpoint string) []Finding {
	_, found := resolve(rules, nil)
	for i := range found {
		found[i].Endpoint = endpoint
	}
	return found
}
