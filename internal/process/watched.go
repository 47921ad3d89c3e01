// SPDX-License-Identifier: Apache-2.0

package process

// Watched is implemented by transports in process that want to hold their
// generations, as a kit for tests does that crashes them. Began is called before
// the host has the generation.
type Watched interface {
	Began(endpoint string, g Generation)
}
