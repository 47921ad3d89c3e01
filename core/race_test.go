// SPDX-License-Identifier: Apache-2.0

//go:build race

package core_test

// stride is the step of the walk over every case where the race detector makes
// it slow.
const stride = 401
