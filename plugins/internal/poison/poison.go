// SPDX-License-Identifier: Apache-2.0

// Package poison overwrites memory that is given back to be used again, in
// builds with the race detector or the tag poison: a use of it after that shows
// as garbage at once, and not only where the memory happens to be used again.
package poison

// Byte is what memory is overwritten with.
const Byte = 0xDB
