// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/cmd/longshore/internal/scaffold"
)

// newCommand groups what can be begun.
func (a *App) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Begins something new: a transport of your own",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.newTransportCommand())
	return cmd
}

// newTransportCommand writes the module of a transport.
func (a *App) newTransportCommand() *cobra.Command {
	var m scaffold.Module
	cmd := &cobra.Command{
		Use:   "transport NAME",
		Short: "Writes a Go module with a transport that passes the conformance suite",
		Long: `Writes the Go module of the plugin longshore-transport-NAME: a queue in memory
that builds and passes the conformance suite as it stands, with a test, a workflow
for CI and a README. Comments say what to replace by a transport of your own, and
which rule holds where. It writes all files or none.`,
		Args: exactlyOne("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Name, m.Version = args[0], releaseOf(debug.ReadBuildInfo())
			return a.newTransport(cmd, m.WithDefaults())
		},
	}
	cmd.Flags().StringVar(&m.Dir, "dir", "", "the module's folder, not there yet or empty (default longshore-transport-NAME)")
	cmd.Flags().StringVar(&m.Path, "module", "", "the module's path, which ends in longshore-transport-NAME (default example.com/longshore-transport-NAME)")
	cmd.Flags().StringVar(&m.Replace, "replace", "", "build with the longshore checkout in this folder instead of a released version")
	return cmd
}

// newTransport writes the module and says how to go on.
func (a *App) newTransport(cmd *cobra.Command, m scaffold.Module) error {
	files, err := m.Write()
	var wrong *scaffold.ArgumentError
	if errors.As(err, &wrong) {
		return &usageError{cmd.CommandPath(), err}
	}
	if err != nil {
		return &unwrittenError{err}
	}
	if _, err := fmt.Fprint(a.Out, nextSteps(m, len(files))); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// unwrittenError says that files could not be written. It does not unwrap: of a
// path that cannot be read the status would be that of a wrong argument.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }

// nextSteps is what is printed behind the writing.
func nextSteps(m scaffold.Module, files int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "wrote %d files of module %s into %s\n\nNext:\n", files, m.Path, m.Dir)
	fmt.Fprintf(&s, "  cd %s\n", quoted(m.Dir))
	if m.Version == "" && m.Replace == "" {
		fmt.Fprintf(&s, "  go mod edit -replace %s=CHECKOUT   # see below\n", scaffold.Longshore)
	}
	fmt.Fprintf(&s, `  go mod tidy
  go test ./...        # builds the plugin and proves that it keeps what it promises
  go build -o bin/ .
  longshore conform bin/%s --card card.md

grep -rn REPLACE . lists the places where your transport comes in; README.md says which rule holds where.
`, m.Program())
	if m.Version == "" && m.Replace == "" {
		s.WriteString(`
This longshore is a development build, so no version of it can be required. CHECKOUT is the folder of its source, absolute or
relative to the new module (--replace writes that line at once). Without it go mod tidy takes the newest version that is published.
`)
	}
	return s.String()
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// quoted returns a word for a shell.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var (
	released  = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	nonpublic = regexp.MustCompile(`[-.][0-9]{14}-[0-9a-f]{12}$`) // a commit, which may be here alone
)

// releaseOf returns the version of this program that others can require, "" for
// a development build.
func releaseOf(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return ""
	}
	m := info.Main
	switch {
	case m.Path != scaffold.Longshore, m.Replace != nil, !released.MatchString(m.Version):
		return ""
	case m.Sum == "" && nonpublic.MatchString(m.Version):
		return ""
	}
	return m.Version
}
