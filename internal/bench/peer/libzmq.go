// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed libzmq/peer.c
var libzmq []byte

// BuildLibZMQ compiles the peer that uses libzmq into a folder and returns its
// path. It needs a C compiler and libzmq's headers; the error names the command
// that installs them on Debian.
func BuildLibZMQ(ctx context.Context, folder string) (string, error) {
	source, program := filepath.Join(folder, "peer.c"), filepath.Join(folder, "libzmq-peer")
	if err := os.WriteFile(source, libzmq, 0o600); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "cc", "-O2", "-o", program, source, "-lzmq", "-lpthread") //nolint:gosec // the folder is the caller's
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the peer of libzmq: %w; apt-get install gcc libzmq3-dev\n%s", err, out)
	}
	return program, nil
}
