// SPDX-License-Identifier: Apache-2.0

package zmtp

// Holds reports whether a reader holds memory.
func Holds(r *Reader) bool { return r.buf.Holds() }
