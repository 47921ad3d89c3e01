// SPDX-License-Identifier: Apache-2.0

package packet

// Guarded is what stands round the library.
var Guarded = guarded
