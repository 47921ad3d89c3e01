// SPDX-License-Identifier: Apache-2.0

package liar_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/liar"
	"github.com/longshore-go/longshore/internal/conform/liar/liartest"
	"github.com/longshore-go/longshore/internal/programtest"
)

// subject is a liar under proof.
func subject(t *testing.T, lie liar.Lie) conform.Subject {
	t.Helper()
	set := map[string]any{"dir": conform.DirWord + "/queues", "stalled": "wall", "token": "keep-this-to-yourself"}
	s := conform.Subject{Path: liartest.Binary(t, lie.Name), Settings: set, Stalled: "wall"}
	if lie.Hold {
		set["hold"] = hold
	}
	if lie.Rewinds {
		set["requeue"] = "rewinds"
	}
	if lie.Cut || lie.Name == "" {
		file := filepath.Join(t.TempDir(), "cut")
		set["cut"] = file
		s.Disconnect = func(context.Context, conform.Place) error { return lengthen(file) }
	}
	return s
}

// hold is that of liars whose lie is about one.
const hold = "1500ms"

// lengthen changes the size of a file.
func lengthen(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("."); err != nil {
		return err
	}
	return f.Close()
}

// run runs the cases that only asks for.
func run(ctx context.Context, s conform.Subject, host string, only func(id string) bool) ([]conform.Result, error) {
	r, err := conform.Run(ctx, s, conform.Options{Only: only, Host: func() ([]string, error) { return []string{host}, nil }})
	if err != nil {
		return nil, err
	}
	return r.Results, nil
}

// host is the program that is killed.
func host(t *testing.T) string {
	return programtest.Path(t, "github.com/longshore-go/longshore/internal/conform/longshore-conform-host")
}

// TestHonest proves a plugin that was written from the protocol's page alone.
func TestHonest(t *testing.T) {
	results, err := run(t.Context(), subject(t, liar.Lie{}), host(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Log(r.Status, r.Case, r.Time, r.Reason, r.Notes)
		for _, f := range r.Faults {
			t.Errorf("%s: %s\n%s", r.Case, f, r.Log)
		}
	}
}

// TestHonestHold proves one whose deliveries have a hold, where that matters.
func TestHonestHold(t *testing.T) {
	honestWith(t, liar.Lie{Hold: true}, "inspect", "credit", "settle", "honesty", "unsettled")
}

// TestHonestRewind proves one whose requeues rewind, where that matters.
func TestHonestRewind(t *testing.T) {
	honestWith(t, liar.Lie{Rewinds: true}, "inspect", "settle", "unsettled")
}

// honestWith proves an honest plugin with the settings of a lie.
func honestWith(t *testing.T, lie liar.Lie, areas ...string) {
	t.Helper()
	results, err := run(t.Context(), subject(t, lie), host(t), func(id string) bool {
		area, _, _ := strings.Cut(id, "/")
		return slices.Contains(areas, area)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Log(r.Status, r.Case, r.Time, r.Reason, r.Notes)
		for _, f := range r.Faults {
			t.Errorf("%s: %s\n%s", r.Case, f, r.Log)
		}
	}
}

// TestLies runs for each lie the cases that have to catch it.
func TestLies(t *testing.T) {
	// Most of the time of a run is waiting: more run at once than there are cores.
	const atOnce, patience = 8, 10 * time.Second
	type outcome struct {
		results []conform.Result
		err     error
	}
	killed := host(t)
	places := make(chan struct{}, atOnce)
	outcomes := map[string]chan outcome{}
	for _, lie := range liar.Lies() {
		s := subject(t, lie)
		s.Wait = patience
		out := make(chan outcome, 1)
		outcomes[lie.Name] = out
		go func() {
			places <- struct{}{}
			defer func() { <-places }()
			rs, err := run(t.Context(), s, killed, func(id string) bool { return slices.Contains(lie.Cases, id) })
			out <- outcome{rs, err}
		}()
	}
	for _, lie := range liar.Lies() {
		t.Run(lie.Name, func(t *testing.T) {
			o := <-outcomes[lie.Name]
			if o.err != nil {
				t.Fatal(o.err)
			}
			if len(o.results) < len(lie.Cases) || len(lie.Cases) == 0 {
				t.Errorf("of the cases %q that have to catch it there are %d", lie.Cases, len(o.results))
			}
			caught := false
			for _, r := range o.results {
				t.Log(r.Status, r.Case, r.Time, r.Reason, r.Faults)
				caught = caught || r.Status == conform.Failed
			}
			if !caught {
				t.Errorf("nothing is wrong with a plugin of which this is true: it %s", lie.Wrong)
			}
		})
	}
}
