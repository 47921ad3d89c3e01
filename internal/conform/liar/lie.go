// SPDX-License-Identifier: Apache-2.0

package liar

import "slices"

// Lie is one way to break the protocol.
type Lie struct {
	Name  string
	Wrong string   // what it does
	Cases []string // ids of the conformance cases of which at least one has to fail
	Cut   bool     // it shows only where the connection is cut, see the setting "cut"
	Hold  bool     // it shows only where holds end, see the setting "hold"
	// Rewinds: it shows only where a requeue rewinds, see the setting "requeue".
	Rewinds bool
	tell    func(c *Conduct)
}

// Lies returns all lies.
func Lies() []Lie {
	return slices.Concat(processLies(), callLies(), publishLies(), deliveryLies(), settleLies(), voidLies(), holdLies(), rewindLies(), promiseLies())
}

// Find returns the conduct of a lie; "" is honest. ok is false where there is no
// such lie.
func Find(name string) (c *Conduct, ok bool) {
	c = &Conduct{}
	if name == "" {
		return c, true
	}
	for _, l := range Lies() {
		if l.Name == name {
			l.tell(c)
			return c, true
		}
	}
	return nil, false
}
