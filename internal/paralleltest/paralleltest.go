// SPDX-License-Identifier: Apache-2.0

// Package paralleltest says how many tests of a package run side by side.
package paralleltest

import (
	"flag"
	"strconv"
)

// AtMost lets so many tests run side by side, whatever processors there are: where
// most of what they do is wait. It is for TestMain; -test.parallel stands where it
// is given, and so does an earlier call.
func AtMost(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // a number
	}
}
