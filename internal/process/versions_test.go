// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/handshake"
)

// TestOlderHost executes a plugin as hosts do that speak other versions only: it
// says so in one line and does not announce itself.
func TestOlderHost(t *testing.T) {
	for _, spoken := range []string{"0", "2,3", "", "11"} {
		cmd := exec.CommandContext(t.Context(), pluginPath())
		dir := t.TempDir()
		cmd.Env = Environ([]string{"GORACE"}, []string{
			handshake.CookieKey + "=" + handshake.CookieValue, handshake.EnvVersions + "=" + spoken, handshake.EnvSocketDir + "=" + dir,
		}, dir)
		leash, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the status is looked at
		_ = leash.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("for a host that speaks %q: exit status %d, want 1", spoken, code)
		}
		if stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("for a host that speaks %q: standard output %q, standard error %q, want one line on the latter", spoken, &stdout, &stderr)
		}
	}
}
