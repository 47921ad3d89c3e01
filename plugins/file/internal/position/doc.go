// SPDX-License-Identifier: Apache-2.0

// Package position keeps how far a group has come in a stream of files: where
// reading goes on, and which of the records before that are not settled.
//
// A [Tracker] is one group's position for one subscription name. It lives in
// memory and is written through to one file, which is locked as long as the
// tracker is open, so that a group has one reader for each name.
//
// # Format
//
// A position file has a head and two slots. Integers are big endian, "u" is an
// unsigned varint and "z" a zigzag varint as in encoding/binary; checksums are
// CRC-32C.
//
//	0     8    "lspos" 0 0 1; the last byte is the version
//	8     2+n  length and name of the group
//	      2+n  length and name of the subscription
//	      4    checksum of all before
//	2048  2+n  length and text "pid owner" of who has it open or had it last, for people
//	4096       slot A, 2 MiB at most
//	2101248    slot B, 2 MiB at most
//
// A slot is a state and what has changed since:
//
//	4    "lsps"
//	8    counter: of two sound slots the higher one counts
//	4    length of the state
//	4    checksum of counter, length and state
//	     state: z z    creation time of the file and offset where reading goes on
//	            u      1: a last record follows; 0: none
//	            z z u z  creation time, offset, sequence and time of the last record handed out
//	            u      number of unsettled records
//	            entry  of each, in the order of the stream; see below
//	     any number of changes, each:
//	4    length
//	4    checksum of the checksum before, the state's or a change's, and the change
//	1    kind
//	     1 deliver: u n; n entries; u z sequence and time of the last; z z distance to where reading goes on
//	     2 again: runs, of what was handed out once more
//	     3 settled: runs
//	     4 moved: z z distance to where reading goes on
//
// The list of changes ends where a checksum does not fit. An entry is u count
// times two, plus one when it lies in another file than the entry before; then,
// if so, z the distance of the creation times; then z the distance of the
// offsets. The first one of a slot is measured from where reading goes on, and
// "moved" from the last entry. Unsettled records are numbered from 0, first
// those of the state, then those of each deliver. A run is u numbers left out
// and u numbers taken; runs begin with u how many there are.
//
// The count of an entry is how often the record was handed out, without what was
// taken back: it may be 0.
//
// A change is one write at the end of the newer slot; a slot that is full is
// left for the other one. A write that is torn or lost with the power leaves a
// state that was true before: records may come twice, none is left out.
package position
