// SPDX-License-Identifier: Apache-2.0

package position

import "fmt"

// Place is where a record begins: an offset in the file that was created then.
type Place struct {
	Created int64 // ms since the epoch, as the file's header says
	Offset  int64
}

// String shows the place to people.
func (p Place) String() string {
	return fmt.Sprintf("offset %d of the file created at %d", p.Offset, p.Created)
}

// Mark is a record that was handed out.
type Mark struct {
	Place
	Sequence uint64
	Time     int64 // ms since the epoch
}

// saved is an unsettled record of a state.
type saved struct {
	place Place
	count uint32 // how often it was handed out, but for what was taken back
}

// state is a position as it is stored.
type state struct {
	next      Place // where reading goes on
	last      Mark  // the last record handed out,
	hasLast   bool  // if any
	unsettled []saved
}
