// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMosquitto(t *testing.T) {
	folder := t.TempDir()
	m, err := StartMosquitto(context.WithoutCancel(t.Context()), folder, "set_tcp_nodelay true") // Close ends it
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.conf"))
	if err != nil || len(files) != 1 {
		t.Fatalf("its settings are in %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.HasSuffix(string(text), "max_inflight_messages 0\nset_tcp_nodelay true\n") {
		t.Errorf("its settings are %s, %v", text, err)
	}
	if m.PID() == 0 || !strings.HasPrefix(m.Address, "127.0.0.1:") {
		t.Errorf("it is process %d at %s", m.PID(), m.Address)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestMosquittoSaysWhatIsWrong(t *testing.T) {
	if _, err := StartMosquitto(t.Context(), t.TempDir(), "no_such_setting 1"); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got %v", err)
	}
}
