// SPDX-License-Identifier: Apache-2.0

package conform

func lifecycleCases() []Case { return nil }
