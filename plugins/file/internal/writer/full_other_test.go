// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package writer

import "testing"

// fullDisk limits the length of files: a small file system is not at hand.
func fullDisk(t *testing.T) narrow {
	t.Helper()
	return longestFile(t, 200<<10)
}
