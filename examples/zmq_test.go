// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// python is the interpreter that Debian's python3-zmq belongs to.
const python = "/usr/bin/python3"

// pushed sends containers as any ZeroMQ program does, by way of libzmq.
const pushed = `
import sys, zmq
context = zmq.Context()
push = context.socket(zmq.PUSH)
push.connect(sys.argv[1])
for line in b"MSKU4410271 24", b"TGHU0091552", b"CMAU7730018 11", b"OOLU2219804 0":
    push.send_multipart([b"containers", b"", line])
push.close()
context.term()
`

// What cannot be weighed is in the stream file, whoever has sent it.
func TestDeadLetters(t *testing.T) {
	for _, tt := range []struct {
		name string
		send func(t *testing.T, dir string)
	}{
		{"longshore", func(t *testing.T, _ string) {
			run(t, "..", "dead-letters/containers.txt", "longshore", "run", "examples/dead-letters/send.yaml")
		}},
		{"libzmq", func(t *testing.T, dir string) {
			cmd := exec.CommandContext(t.Context(), python, "-c", pushed, "ipc://"+filepath.Join(dir, "queue"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("pyzmq: %v; it needs Debian's python3-zmq: run tools/needs.sh:\n%s", err, out)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A test's own folder can be too long for a socket.
			dir, err := os.MkdirTemp("", "ls-dead-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			t.Setenv("WORK", dir)
			dead := 0
			_, log := serve(t, "examples/dead-letters/work.yaml", func(line string, p *os.Process) {
				switch {
				case strings.Contains(line, "host serves"):
					tt.send(t, dir)
				case strings.Contains(line, "code=L-CAP-DL"):
					dead++
				default:
					return
				}
				if dead == 2 || t.Failed() {
					_ = p.Signal(syscall.SIGTERM)
				}
			})
			out, looked := run(t, "..", "", "longshore", "run", "examples/dead-letters/look.yaml")
			compare(t, "dead-letters", out, log+looked)
		})
	}
}
