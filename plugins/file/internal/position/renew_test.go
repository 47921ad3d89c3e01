// SPDX-License-Identifier: Apache-2.0

package position

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// due makes the next write look at the path.
func due(tr *Tracker) {
	if f, ok := tr.store.disk.(*file); ok {
		f.looked = time.Time{}
	}
}

// A position that is removed or replaced while the group reads is written anew,
// which is told once, and holds the lock of the new file.
func TestPositionIsRemoved(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"the file": func(t *testing.T, path string) { remove(t, path) },
		"the folder of all groups": func(t *testing.T, path string) {
			remove(t, filepath.Dir(filepath.Dir(path)))
		},
		"replaced by an older one": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			remove(t, path)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "groups")
			tr := begun(t, folder)
			all := stream(6)
			es := tr.Deliver(nil, all[:5], all[5].Place)
			if err := tr.Settle(acks(es[0])); err != nil {
				t.Fatal(err)
			}
			spoil(t, tr.Path())
			due(tr)
			var renewed *RenewedError
			if err := tr.Settle(acks(es[1], es[3])); !errors.As(err, &renewed) || renewed.Path != tr.Path() {
				t.Fatalf("settle: %v", err)
			}
			due(tr)
			if err := tr.Settle(acks(es[4])); err != nil {
				t.Fatal(err)
			}
			var locked *LockedError
			if _, err := Open(folder, "billing", "orders", "another"); !errors.As(err, &locked) {
				t.Errorf("opened once more: %v", err)
			}
			if err := tr.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Open(folder, "billing", "orders", "")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := pending(again), []saved{{all[2].Place, 1}}; !slices.Equal(got, want) || again.Next() != all[5].Place {
				t.Errorf("found %v at %v", got, again.Next())
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Where another reader has begun a position in the place of one that was
// removed, it is left alone and the first reader is told so.
func TestPositionIsTakenOver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "groups")
	tr := begun(t, folder)
	all := stream(3)
	es := tr.Deliver(nil, all[:2], all[2].Place)
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	remove(t, folder)
	other := begun(t, folder)
	due(tr)
	var locked *LockedError
	for _, e := range es {
		if err := tr.Settle(acks(e)); !errors.As(err, &locked) {
			t.Errorf("settle: %v", err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var renewed *RenewedError
	if err := tr.Close(); !errors.As(err, &renewed) {
		t.Errorf("close: %v", err)
	}
}

func begun(t *testing.T, folder string) *Tracker {
	t.Helper()
	tr, err := Open(folder, "billing", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Begin(stream(1)[0].Place); err != nil {
		t.Fatal(err)
	}
	return tr
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
