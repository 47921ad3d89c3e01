// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/paralleltest"
)

// TestMain is a host in a process of its own where the environment says so, see
// startChild. Otherwise it gives all tests one folder for the sockets of their
// plugins, which must be empty at the end.
func TestMain(m *testing.M) {
	if config := os.Getenv(envChild); config != "" {
		os.Exit(childMain(config))
	}
	paralleltest.AtMost(4)
	root, err := os.MkdirTemp("", "ls-k-") // short: sockets are put below it
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := pulsarShared.Run(m)
	if left := filesIn(root); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "plugins left files behind: %s\n", strings.Join(left, ", "))
		code = max(code, 1)
	}
	_ = os.RemoveAll(root)
	os.Exit(code)
}

// filesIn lists what is in a folder and in the folders right below it.
func filesIn(dir string) []string {
	var out []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		out = append(out, e.Name())
		inner, _ := os.ReadDir(dir + "/" + e.Name())
		for _, i := range inner {
			out = append(out, e.Name()+"/"+i.Name())
		}
	}
	return out
}
