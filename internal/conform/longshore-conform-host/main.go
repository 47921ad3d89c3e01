// SPDX-License-Identifier: Apache-2.0

// Command longshore-conform-host is a host that conformance tests kill. It
// reads what to do from standard input.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/longshore-go/longshore/internal/conform"
)

func main() {
	if err := conform.HostMain(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-conform-host:", err)
	}
	os.Exit(1)
}
