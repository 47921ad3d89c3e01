// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/process"
)

// failedError says that a plugin failed.
type failedError struct {
	plugin string
	cases  []string
}

func (e *failedError) Error() string {
	if len(e.cases) == 1 {
		return fmt.Sprintf("plugin %s fails 1 case: %s", e.plugin, e.cases[0])
	}
	return fmt.Sprintf("plugin %s fails %d cases: %s", e.plugin, len(e.cases), strings.Join(e.cases, ", "))
}

// noPluginError says that what was to be proved is no plugin.
type noPluginError struct{ err *process.StartError }

func (e *noPluginError) Error() string { return e.err.Error() }
func (e *noPluginError) Unwrap() error { return e.err }

// settingsError is what a plugin says of its settings, in lines of their file.
type settingsError struct {
	file *config.Settings // nil = there is none
	err  *conform.SettingsError
}

func (e *settingsError) Error() string {
	fault := e.err.Fault
	if fault == nil || len(fault.Diagnostics) == 0 {
		return e.err.Error()
	}
	lines := make([]string, len(fault.Diagnostics))
	for i, d := range fault.Diagnostics {
		if e.file != nil {
			lines[i] = e.file.Problem(d.Path, d.Message, d.Fix)
			continue
		}
		one := conform.SettingsError{Plugin: e.err.Plugin, Step: e.err.Step, Fault: &core.Fault{Message: fault.Message, Diagnostics: fault.Diagnostics[i : i+1]}}
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func (e *settingsError) Unwrap() error { return e.err }

// explain puts an error of the suite into the words of the command line.
func (p *proof) explain(err error) error {
	var (
		start   *process.StartError
		refused *conform.SettingsError
		lacking *conform.SubjectError
	)
	switch {
	case errors.As(err, &start) && start.Stage != process.StageDirectory:
		own := *start
		own.Endpoint = "" // there is none here
		return &noPluginError{&own}
	case errors.As(err, &refused):
		e := &settingsError{err: refused}
		switch refused.Step {
		case "settings":
			e.file = p.settings
		case "subscription":
			e.file = p.choices
		}
		return e
	case errors.As(err, &lacking):
		return &usageError{"longshore conform", fmt.Errorf("%s: %s; %s", flagOf(lacking.Field), lacking.Reason, lacking.Fix)}
	}
	return err
}
