// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// likely is how many letters of a command's name may be wrong for it to be
// suggested: two, as a swap of neighbours is.
const likely = 2

// noArgs refuses arguments. Of a command that has commands they are taken for
// the name of one.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%s takes no argument, not even %q", cmd.CommandPath(), args[0])
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = likely
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(text)
}

// exactlyOne wants one argument, which the help text calls name.
func exactlyOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s is missing", name)
		case 1:
			return nil
		}
		return fmt.Errorf("there is one %s, and %d arguments", name, len(args))
	}
}

// duration is a flag that says how a time is written.
type duration time.Duration

// durationFlag adds a flag with a time.
func durationFlag(cmd *cobra.Command, into *time.Duration, name string, fallback time.Duration, usage string) {
	*into = fallback
	cmd.Flags().Var((*duration)(into), name, usage)
}

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("write it like 5s or 1m30s")
	}
	*d = duration(v)
	return nil
}

// Type implements pflag.Value.
func (*duration) Type() string { return "duration" }

// String implements pflag.Value. The help text shows no default that is "0".
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// words splits a command line as a shell does, with quotes and backslashes and
// nothing else.
func words(line string) ([]string, error) {
	var (
		list  []string
		word  strings.Builder
		begun bool // a word, which may be empty
		quote rune
		plain bool // the next character stands for itself
	)
	for _, r := range line {
		switch {
		case plain:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			plain = false
		case r == '\\' && quote != '\'':
			begun, plain = true, true
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case strings.ContainsRune(" \t\n", r):
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || plain {
		return nil, errors.New("a quote or backslash has no end")
	}
	if begun {
		list = append(list, word.String())
	}
	if len(list) == 0 {
		return nil, errors.New("it is empty")
	}
	return list, nil
}
