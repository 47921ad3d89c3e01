// SPDX-License-Identifier: Apache-2.0

package paralleltest

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	before := flag.Lookup("test.parallel").Value.String()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	AtMost(7)
	AtMost(9)
	want = "7"
	if given {
		want = before
	}
	os.Exit(m.Run())
}

var want string

// The first call counts, and what the command line says before it.
func TestAtMost(t *testing.T) {
	if got := flag.Lookup("test.parallel").Value.String(); got != want {
		t.Errorf("%s tests run side by side, want %s", got, want)
	}
}
