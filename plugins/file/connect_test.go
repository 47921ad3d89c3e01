// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// reads is the usage of a service that only reads keys.
func reads(keys ...string) pluginapi.Usage {
	var u pluginapi.Usage
	for i, k := range keys {
		u.Registrations = append(u.Registrations, pluginapi.Registration{ID: uint32(i), Name: k})
	}
	return u
}

// Any number of endpoints read a file that another one writes, and none of them
// leaves a lock behind.
func TestManyReadersOfOneWriter(t *testing.T) {
	path := newPath(t)
	var readers []*bench
	var subs []pluginapi.Subscription
	for range 3 {
		b := open(t, settings.Settings{Path: path}, reads("k"))
		readers, subs = append(readers, b), append(subs, b.subscribe("k", settings.Subscription{}))
	}
	w := open(t, settings.Settings{Path: path}, writes("k"))
	w.put("k", "1", "2")
	for i, b := range readers {
		ds, _ := b.take(subs[i], 2)
		servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k 1 stream-sequence=1", "k 2 stream-sequence=2")
		// A copy that nothing announced cannot be written while another one writes.
		r := b.publish(servicetest.Message("k", "3"))[0]
		if r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultConflict || r.Fault.Transient || !strings.Contains(r.Fault.Error(), "endpoint in") {
			t.Errorf("published with %v, %v", r.Status, r.Fault)
		}
		closeSub(t, subs[i])
	}
	w.end()
	// Then the path is free.
	readers[0].put("k", "3")
	readers[0].end()
	servicetest.Expect(t, "file", contents(t, path), "k 1", "k 2", "k 3")
	only(t, path, "orders.ss")
}

// only checks what stands in a file's folder.
func only(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	servicetest.Expect(t, "folder", got, want...)
}

// Endpoints that find no file at the same time agree on one.
func TestFileIsCreatedOnce(t *testing.T) {
	path := newPath(t)
	var all sync.WaitGroup
	for range 8 {
		e := configure(t, settings.Settings{Path: path, EndWithEOS: true}, nil)
		e.Inspect(reads("k"))
		all.Go(func() {
			c, err := e.Connect(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	servicetest.Expect(t, "file", contents(t, path)) // no end mark of those that only read
	only(t, path, "orders.ss")
}

// A file that is locked before it has a header is waited for.
func TestFileInTheMaking(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, settings.Settings{Path: path}, writes("k"))
	defer w.end()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e := configure(t, settings.Settings{Path: path}, nil)
	e.Inspect(reads("k"))
	_, err := e.Connect(ctx, nil)
	if f := faulted(err); f == nil || f.Code != core.FaultConflict {
		t.Errorf("connected with %v", err)
	}
}

// Whatever stands at the path, nothing is written to what is no stream file, and
// the fault names the path.
func TestConnectRefuses(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, path string
		want       core.FaultCode
	}{
		{"another kind", put("text.ss", strings.Repeat("no stream file\n", 20)), core.FaultInvalid},
		{"a short one of another kind", put("short.ss", "hello"), core.FaultInvalid},
		{"a folder", dir, core.FaultInvalid},
		{"no folder", filepath.Join(dir, "none", "orders.ss"), core.FaultNotFound},
	} {
		for use, u := range map[string]pluginapi.Usage{"to read": reads("k"), "to write": writes("k")} {
			t.Run(tt.name+" "+use, func(t *testing.T) {
				before, _ := os.ReadFile(tt.path)
				_, err := connect(t, settings.Settings{Path: tt.path}, u)
				f := faulted(err)
				if f == nil || f.Code != tt.want || f.Transient || !strings.Contains(f.Error(), tt.path) {
					t.Errorf("connected with %+v", err)
				}
				if after, _ := os.ReadFile(tt.path); string(after) != string(before) {
					t.Errorf("it was written to: %q", after)
				}
			})
		}
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	servicetest.Expect(t, "folder", left, "short.ss", "text.ss")
}

// A folder that is not there is named in full, and what a shell would have made of
// the path is told of.
func TestConnectTellsOfPathsThatAreTakenAsWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, fix := range map[string]string{
		"data/orders.ss":       "create what is missing",
		"~/orders.ss":          "${env:NAME}",
		"$HOME/orders.ss":      "${env:NAME}",
		"file:///tmp/order.ss": "not a URL",
	} {
		_, err := connect(t, settings.Settings{Path: path}, reads("k"))
		f := faulted(err)
		if f == nil || f.Code != core.FaultNotFound || len(f.Diagnostics) != 1 {
			t.Errorf("%s: connected with %v", path, err)
			continue
		}
		if d := f.Diagnostics[0]; d.Path != "path" || !strings.Contains(d.Fix, fix) || !strings.Contains(d.Message, here) {
			t.Errorf("%s: got %+v, want %q", path, d, fix)
		}
	}
}

// A torn tail is cut off by who writes, or refused where that is wanted; who
// only reads does not touch it.
func TestTornTail(t *testing.T) {
	path := written(t, "k 1", "k 2")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x01k\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	open(t, settings.Settings{Path: path, TornTail: settings.TornTailRefuse}, reads("k")).end()
	_, err = connect(t, settings.Settings{Path: path, TornTail: settings.TornTailRefuse}, writes("k"))
	if f := faulted(err); f == nil || f.Diagnostics[0].Path != "torn_tail" || !strings.Contains(f.Error(), "offset") {
		t.Errorf("connected with %v", err)
	}
	if now, err := os.Stat(path); err != nil || now.Size() != fi.Size() {
		t.Errorf("the file has %d bytes, %v; it had %d", now.Size(), err, fi.Size())
	}
	w := open(t, settings.Settings{Path: path}, writes("k"))
	w.put("k", "3")
	w.end()
	servicetest.Expect(t, "file", contents(t, path), "k 1", "k 2", "k 3")
}

// An end mark is written by who wrote, and gives way to what is written later.
func TestEndMark(t *testing.T) {
	path := newPath(t)
	set := settings.Settings{Path: path, EndWithEOS: true}
	w := open(t, set, writes("k"))
	w.put("k", "1")
	w.end()
	servicetest.Expect(t, "file", contents(t, path), "k 1", "END")
	b := open(t, settings.Settings{Path: path}, reads("k"))
	s := b.subscribe("k", settings.Subscription{}) // the mark stood there already
	defer closeSub(t, s)
	b.quiet(s)
	w = open(t, set, writes("k"))
	w.put("k", "2")
	ds, _ := b.take(s, 1)
	w.end()
	more, _ := b.toEnd(s)
	servicetest.Expect(t, "deliveries", servicetest.Texts(append(ds, more...)), "k 2 stream-sequence=2")
	servicetest.Expect(t, "file", contents(t, path), "k 1", "k 2", "END")
}
