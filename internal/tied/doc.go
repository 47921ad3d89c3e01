// SPDX-License-Identifier: Apache-2.0

// Package tied ties commands to the process that starts them: where the system
// can do it, they do not outlive it.
package tied
