// SPDX-License-Identifier: Apache-2.0

package term

import "golang.org/x/sys/unix"

// getTermios asks a terminal for its settings.
const getTermios = unix.TCGETS
