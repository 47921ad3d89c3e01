// SPDX-License-Identifier: Apache-2.0

package topic

import "regexp"

// Pattern matches topics of one namespace by their whole names: "orders-.*" does
// not match "old-orders-1".
type Pattern struct {
	tenant    string
	namespace string
	text      string
	whole     *regexp.Regexp
}

// ParsePattern reads the pattern of a subscription in the forms of Parse. Tenant and
// namespace are literal; what follows is an expression of RE2 for the whole name of
// a topic behind them, without its partition. The fault names the pattern.
func ParsePattern(s string) (Pattern, error) {
	tenant, namespace, text, err := split("pattern", s)
	if err != nil {
		return Pattern{}, err
	}
	refuse := func(reason string) (Pattern, error) {
		return Pattern{}, invalid("pattern", s, reason, "write an expression of RE2 behind tenant and namespace, \"orders-.*\" for instance")
	}
	if text == "" {
		return refuse("it has no expression")
	}
	if _, err := regexp.Compile(text); err != nil { // alone, so that it cannot close the group below
		return refuse(err.Error())
	}
	whole, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return refuse(err.Error())
	}
	return Pattern{tenant: tenant, namespace: namespace, text: text, whole: whole}, nil
}

// Matches reports whether n is a topic of the pattern, or a partition of one.
func (p Pattern) Matches(n Name) bool {
	return p.whole != nil && n.Tenant == p.tenant && n.Namespace == p.namespace && p.whole.MatchString(n.Local)
}

// NamespacePath returns "tenant/namespace".
func (p Pattern) NamespacePath() string { return p.tenant + "/" + p.namespace }

// String returns the pattern in full.
func (p Pattern) String() string {
	return persistent + scheme + p.tenant + "/" + p.namespace + "/" + p.text
}
