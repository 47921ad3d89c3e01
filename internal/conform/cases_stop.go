// SPDX-License-Identifier: Apache-2.0

package conform

func stopCases() []Case { return nil }
