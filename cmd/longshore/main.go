// SPDX-License-Identifier: Apache-2.0

// Command longshore runs messaging services and shows how they settle messages.
package main

import (
	"os"

	"github.com/longshore-go/longshore/cmd/longshore/internal/cli"
)

func main() { os.Exit(cli.Standard().Main()) }
