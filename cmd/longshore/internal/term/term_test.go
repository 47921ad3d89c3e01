// SPDX-License-Identifier: Apache-2.0

package term

import (
	"os"
	"testing"

	"github.com/creack/pty"
)

func TestColoursOnTerminalsOnly(t *testing.T) {
	controller, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	defer controller.Close()
	defer terminal.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		name string
		file *os.File
		env  map[string]string
		want string
	}{
		{"terminal", terminal, nil, "\x1b[31mx\x1b[0m"},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, "x"},
		{"NO_COLOR set to nothing", terminal, map[string]string{"NO_COLOR": ""}, "\x1b[31mx\x1b[0m"},
		{"dumb terminal", terminal, map[string]string{"TERM": "dumb"}, "x"},
		{"pipe", write, nil, "x"},
		{"/dev/null", null, nil, "x"},
		{"no file", nil, nil, "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := For(tt.file, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
			if got := s.Red("x"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := s.Red(""); got != "" {
				t.Errorf("got %q for nothing", got)
			}
		})
	}
}
