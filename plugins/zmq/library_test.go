// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// used is what the transport uses of the library: the handshake and the types of
// sockets, no socket of it (ADR 0100).
var used = []string{
	"Open", "Conn", "Security", "NullSecurity", "SocketIdentity", "SocketType",
	"Pair", "Pub", "Sub", "Req", "Rep", "Dealer", "Router", "Pull", "Push", "XPub", "XSub",
}

// Nothing of the library is used beyond the handshake.
func TestOnlyTheHandshakeIsTheLibrarys(t *testing.T) {
	found := map[string]bool{}
	files(t, ".", ".go", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "zmq4" {
					found[s.Sel.Name] = true
					if !slices.Contains(used, s.Sel.Name) {
						t.Errorf("%s uses zmq4.%s", path, s.Sel.Name)
					}
				}
			}
			return true
		})
	})
	if !found["Open"] {
		t.Error("the library's handshake is not used at all")
	}
}

// The record of what is done about the library's sockets names only tests that
// are there.
func TestRecordOfTheLibrarysSockets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adr", "0100-zmtp-by-hand-behind-the-handshake.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	files(t, ".", "_test.go", func(path string) {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
	})
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault") {
			continue
		}
		rows++
		names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named in %s", line)
		}
		for _, m := range names {
			if !there[m[1]] {
				t.Errorf("there is no test %s", m[1])
			}
		}
	}
	if rows == 0 {
		t.Error("there is no table")
	}
}

// files calls f for each file below a folder whose name ends so.
func files(t *testing.T, folder, suffix string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A peer that wants to be authenticated gets nowhere, whatever its credentials.
func TestNoCredentialsAreTaken(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "CURVE"} {
		t.Run(mechanism, func(t *testing.T) {
			b := newBystander(t, binds(settings.PatternQueue, anyPort))
			p := reach(t, b.reader.address())
			greeting := "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00" + mechanism + strings.Repeat("\x00", 15+1+31)
			p.raw(greeting + "\x04\x12\x05HELLO\x05admin\x06secret" + "\x01\x04jobs\x00\x05smile")
			p.dropped(mechanism)
			eventually(t, "it is told of", func() bool {
				return len(b.reader.log.Lines("WARN", "peer=tcp://"+p.nc.LocalAddr().String(), mechanism)) == 1
			})
			b.goesOn(t)
		})
	}
	t.Run("as libzmq goes", func(t *testing.T) {
		b := newBystander(t, binds(settings.PatternQueue, anyPort))
		p := reach(t, b.reader.address())
		p.raw("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f") // it hangs up at a greeting with another mechanism than its own
		p.nc.Close()
		eventually(t, "it is told of", func() bool {
			return len(b.reader.log.Lines("WARN", "peer=tcp://"+p.nc.LocalAddr().String(), "PLAIN, CURVE")) == 1
		})
		b.goesOn(t)
	})
}

// A bound queue all of whose messages fail for ever publishes a copy of each to
// itself, and gives its window back when the copy is confirmed: it never stands
// still, however much its senders push.
func TestCopiesToItselfNeverWaitForARead(t *testing.T) {
	total := 1_000_000
	if poison.On {
		total = 30_000
	}
	const window, producers = 64, 4
	b := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	s := b.subscribe("jobs")
	for range producers {
		p := meet(t, b.address(), zmq4.Push, "")
		go func() {
			flood := []byte(strings.Repeat("\x01\x04jobs\x01\x00\x00\x04work", 1000))
			for {
				if _, err := p.nc.Write(flood); err != nil {
					return // the endpoint is closed, or its time is over
				}
			}
		}()
	}
	room := pluginapi.Room{Messages: window, Bytes: servicetest.Plenty.Bytes}
	for handled := 0; handled < total; {
		batch, err := s.Receive(b.ctx, room)
		if err != nil {
			t.Fatalf("it stands still at %d: %v", handled, err)
		}
		handled += len(batch.Deliveries)
		copies := make([]pluginapi.Outgoing, 0, len(batch.Deliveries))
		for _, d := range batch.Deliveries {
			if d.Message.Name != "jobs" || string(d.Message.Payload) != "work" {
				t.Fatalf("received %s", fmt.Sprint(servicetest.Texts(batch.Deliveries)))
			}
			copies = append(copies, pluginapi.Outgoing{Message: d.Message, Purpose: pluginapi.PurposeRetry})
		}
		b.put(copies...)
		if batch.Memory != nil {
			batch.Memory.Release()
		}
	}
}
