// SPDX-License-Identifier: Apache-2.0

package conform

func settleCases() []Case { return nil }
