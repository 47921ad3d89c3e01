// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package writer

import "os"

// datasync brings a file to disk.
func datasync(f *os.File) error { return f.Sync() }
