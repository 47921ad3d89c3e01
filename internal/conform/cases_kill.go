// SPDX-License-Identifier: Apache-2.0

package conform

func killCases() []Case { return nil }
