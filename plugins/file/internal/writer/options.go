// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Sync says when the kernel is told to bring to disk what has been written.
type Sync int

const (
	// SyncNone leaves it to the kernel until the writer is closed. What a
	// receipt confirmed survives the end of the process, not of the machine.
	SyncNone Sync = iota
	// SyncInterval does it every Options.SyncEvery while there is something
	// new. A receipt is worth what it is with SyncNone, but no more than the
	// last interval can be lost.
	SyncInterval
	// SyncEach confirms a record only when it is on disk. One sync confirms
	// all that was written before it began.
	SyncEach
)

// The defaults of Options.
const (
	DefaultMaxBytes  = 16 << 30
	DefaultSyncEvery = time.Second
)

// Options say how a path is written. The zero value is good.
type Options struct {
	Existing bool   // do not create a missing file
	EndMark  bool   // end the file with an end mark at Close
	Interval uint32 // of beacons, for new files: a positive multiple of 1024; default format.DefaultInterval

	MaxBytes int64 // how long a file may become, an end mark not counted; default DefaultMaxBytes

	Sync      Sync
	SyncEvery time.Duration // default DefaultSyncEvery

	RotateBytes int64         // begin another file before a record would make one longer; 0 = never
	RotateAge   time.Duration // begin another file with the first record that comes so long after the file was created; 0 = never
	Keep        int           // how many rotated files are kept; 0 = all

	RefuseTorn bool // refuse to open a file that ends within a record, instead of cutting that off

	Owner   string           // who holds the lock, for others to read
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // default: none
	Written func()           // called after each write, when readers may look; it must not block
}

func (o *Options) complete() error {
	switch {
	case o.Interval%format.IntervalUnit != 0:
		return fmt.Errorf("beacon_interval %d: not a multiple of %d", o.Interval, format.IntervalUnit)
	case o.Sync < SyncNone || o.Sync > SyncEach:
		return fmt.Errorf("fsync: there is no mode %d", o.Sync)
	case o.MaxBytes < 0 || o.SyncEvery < 0 || o.RotateBytes < 0 || o.RotateAge < 0 || o.Keep < 0:
		return fmt.Errorf("max_bytes %d, fsync_interval %v, rotate %d, %v, %d: none may be negative",
			o.MaxBytes, o.SyncEvery, o.RotateBytes, o.RotateAge, o.Keep)
	}
	if o.Interval == 0 {
		o.Interval = format.DefaultInterval
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = DefaultSyncEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// rotates reports whether another file may be begun.
func (o *Options) rotates() bool { return o.RotateBytes > 0 || o.RotateAge > 0 }
