// SPDX-License-Identifier: Apache-2.0

package settlement

type batch struct {
	keys     []*key
	draining *key
}
