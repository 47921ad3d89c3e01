// SPDX-License-Identifier: Apache-2.0

package intake

import "golang.org/x/sys/unix"

// fionread asks for the bytes that can be read; Linux calls it so for sockets.
const fionread = unix.SIOCINQ
