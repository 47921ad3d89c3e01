// SPDX-License-Identifier: Apache-2.0

package conform

func processCases() []Case { return nil }
