// SPDX-License-Identifier: Apache-2.0

package conform

func settingsCases() []Case { return nil }
