// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/handshake"
)

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol uint   `json:"protocol"` // of plugins
}

// versionCommand prints what this program is.
func (a *App) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Prints the version, and the plugin protocol that it speaks",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if output == "json" {
				return writeJSON(a.Out, b)
			}
			if _, err := fmt.Fprintln(a.Out, b); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text", "json")
	return cmd
}

// thisBuild is this program.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return builtFrom(info)
}

// builtFrom reads what the Go toolchain recorded.
func builtFrom(info *debug.BuildInfo) build {
	b := build{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocol: handshake.Version,
	}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns it as one line.
func (b build) String() string {
	s := "longshore " + b.Version
	if b.Commit != "" {
		s += " (" + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return fmt.Sprintf("%s, plugin protocol %d, %s, %s", s, b.Protocol, b.Go, b.Platform)
}

// writeJSON writes v, indented, for people and programs alike.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
