// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

// stride is the step of the walk over every case in a plain run. It shares no
// factor with the number of choices of anything, so that all pairs are met.
const stride = 53
