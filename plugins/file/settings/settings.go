// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the file transport and the options of
// its subscriptions.
package settings

import "github.com/longshore-go/longshore/core"

// The values of Fsync.
const (
	FsyncNone     = "none"     // when the endpoint is closed
	FsyncInterval = "interval" // every FsyncInterval while something is written
	FsyncEach     = "each"     // before each receipt; those that wait share one
)

// The values of TornTail.
const (
	TornTailCut    = "cut"
	TornTailRefuse = "refuse"
)

// Settings are the file transport's settings. Path is required, everything else
// has a default.
type Settings struct {
	// Path is the stream file. It is created where it is missing; its folder is
	// not.
	Path string `json:"path" required:"true" min:"1" doc:"The stream file; its folder must exist."`
	// ExistingOnly refuses to connect where the file is missing.
	ExistingOnly bool `json:"existing_only,omitempty" doc:"A missing file is an error and is not created."`
	// EndWithEOS writes the end mark when the endpoint is closed: live
	// subscriptions on the file end there.
	EndWithEOS bool `json:"end_with_eos,omitempty" doc:"The end mark is written when the endpoint is closed, so live readers end."`
	// BeaconInterval is the distance of the beacons of a new file in bytes, a
	// multiple of 1024. An existing file keeps its own. Default 1 MiB.
	BeaconInterval int64 `json:"beacon_interval,omitempty" default:"1048576" doc:"Bytes between beacons of a new file, a multiple of 1024."`
	// MaxBytes is how long the file may become. A message that would make it
	// longer is refused, as all later ones are. Default 16 GiB.
	MaxBytes int64 `json:"max_bytes,omitempty" default:"17179869184" min:"1024" doc:"The longest the file may become; what would exceed it is refused."`
	// Fsync says when written records are forced onto the disk: FsyncNone (the
	// default), FsyncInterval or FsyncEach. With FsyncEach a receipt means that
	// the record is stored, else that it is with the operating system.
	Fsync string `json:"fsync,omitempty" default:"none" enum:"none,interval,each" doc:"When records are forced onto the disk: none (at close), interval, or each (before its receipt)."`
	// FsyncInterval is how often FsyncInterval does it. Default 1 s.
	FsyncInterval core.Duration `json:"fsync_interval,omitempty" default:"1s" min:"1ms" doc:"How often, with fsync: interval."`
	// TornTail says what is done about half a record at the end of a file that is
	// to be written, which a killed writer leaves: TornTailCut (the default) cuts
	// it off, TornTailRefuse refuses to connect and names the offset.
	TornTail string `json:"torn_tail,omitempty" default:"cut" enum:"cut,refuse" doc:"What to do about half a record at the end before writing: cut it off, or refuse."`
	// Rotate goes on in a new file by size or age. Without it nothing rotates.
	Rotate Rotate `json:"rotate,omitempty" doc:"When to go on in a new file, and how many old ones to keep."`
	// Groups is the folder of the positions of groups. Default: the path with
	// ".groups" appended.
	Groups string `json:"groups,omitempty" doc:"The folder with the positions of groups; default the path + .groups."`
}

// Rotate says when the file is renamed to orders.000001.ss and so on, and a new
// one begun: when it has become so long or so old, whichever comes first, and
// never by what is not given. Readers follow.
type Rotate struct {
	Bytes int64         `json:"bytes,omitempty" min:"1024" doc:"Go on in a new file when this one has become so long."`
	Age   core.Duration `json:"age,omitempty" min:"1s" doc:"Go on in a new file when this one has become so old."`
	Keep  int           `json:"keep,omitempty" min:"0" doc:"How many old files are kept; 0: all."`
}

// Subscription are the options of one subscription. Its name is a stream key, a
// prefix followed by "*", or "*" for all keys.
type Subscription struct {
	// Replay reads what there is and then says that it has caught up. Without it
	// a subscription is live: it goes on with what is written.
	Replay bool `json:"replay,omitempty" doc:"Read what there is and stop at the end, in place of waiting for more."`
	// Start is where to begin, at every start of the service. Default: a live
	// subscription begins at the end, a replay and one with a group at the
	// beginning. With a group it applies only while the group has no position.
	Start Start `json:"start,omitempty" doc:"Where to begin: beginning, end, \"sequence 7\", or \"timestamp 2026-11-30T00:00:00Z\" (or milliseconds)."`
	// Group names a position that is kept beside the file. Deliveries are then
	// acked, what is unsettled comes again, and a service goes on where it acked.
	// One subscription has the position at a time.
	Group string `json:"group,omitempty" min:"1" max:"249" doc:"Keep the position under this name, so that a restart goes on where it acked."`
}
