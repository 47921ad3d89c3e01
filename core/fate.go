// SPDX-License-Identifier: Apache-2.0

package core

// Done is a step that was carried out and what became of it.
type Done struct {
	Step   Step
	Result Result
}

// Party is who dies.
type Party uint8

// The parties.
const (
	PartyNobody       Party = iota // nobody dies
	PartyHost                      // the host's process, and with it every plugin
	PartySourcePlugin              // the plugin that the delivery came from
	PartySourceBroker              // what is behind it
	PartyTargetPlugin              // the plugin that the copy goes to
	PartyTargetBroker              // what is behind it
)

// Ending is a set of what can become of a message.
type Ending uint8

// The endings.
const (
	EndingDone    Ending = 1 << iota // the outcome is carried out
	EndingKept                       // it is still somewhere and will be dealt with
	EndingLost                       // it is gone although the outcome wanted more
	EndingDoubled                    // it is there once too often
)

// Fate returns what becomes of the message when dies dies after the first done
// steps of path. A death while a step is under way ends like the one before
// that step or like the one after it.
func Fate(path []Done, done int, dies Party, c *Case) Ending {
	return 0
}
