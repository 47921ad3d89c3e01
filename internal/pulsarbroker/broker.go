// SPDX-License-Identifier: Apache-2.0

// Package pulsarbroker runs Pulsar, one process of a standalone broker, for tests:
// on ports of its own of this machine and in a folder of its own. tools/pulsar.sh
// fetches it.
package pulsarbroker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/paralleltest"
)

// Broker is a broker as one test has it. Its methods may be called by any
// goroutine, except those that start or end it; they fail the test where something
// goes wrong, and then belong to the test's own goroutine.
type Broker struct {
	tb testing.TB
	s  *server
}

// Start starts a broker of the test's own, which serves when it returns and ends
// with the test. Where Java or the jars are missing, it fails the test and names
// what to run.
func Start(tb testing.TB, c Config) *Broker {
	tb.Helper()
	s, err := newServer(c, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.end(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("the broker's log:\n%s", s.log())
		}
	})
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
	return &Broker{tb, s}
}

// Shared is one broker for the tests of a package, started when the first of them
// asks for it. The zero value is one with Config's defaults.
type Shared struct {
	Config Config

	once   sync.Once
	s      *server
	folder string
	err    error
}

// Main runs the tests in TestMain, ends the broker, and exits: with an error also
// where goroutines are left.
func (s *Shared) Main(m *testing.M) { os.Exit(s.Run(m)) }

// Run is Main with the code returned to exit with. It lets more tests run side by side
// than there are processors: most of what they do is wait.
func (s *Shared) Run(m *testing.M) int {
	paralleltest.AtMost(8)
	return leaktest.Run(m, s.end)
}

// end ends the broker.
func (s *Shared) end() {
	if s.s != nil {
		_ = s.s.end() // what is left ends with this process
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder) // it is one of the system's for temporary files
	}
}

// Broker returns the broker, for a test that uses topics of its own: see Topic.
func (s *Shared) Broker(tb testing.TB) *Broker {
	tb.Helper()
	s.once.Do(func() {
		if s.folder, s.err = newFolder(); s.err != nil {
			return
		}
		if s.s, s.err = newServer(s.Config, s.folder); s.err == nil {
			s.err = s.s.start()
		}
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return &Broker{tb, s.s}
}

// Stop has the broker end as a service manager does, and waits for its end.
func (b *Broker) Stop() {
	b.tb.Helper()
	if err := b.s.stop(); err != nil {
		b.tb.Fatal(err)
	}
}

// Kill kills the broker and waits for its end.
func (b *Broker) Kill() { b.s.kill() }

// Start starts a broker again that was stopped or killed, on the same ports and in
// the same folder.
func (b *Broker) Start() {
	b.tb.Helper()
	if err := b.s.again(); err != nil {
		b.tb.Fatal(err)
	}
}

// Configure sets what Start starts the broker with.
func (b *Broker) Configure(c Config) { b.s.c = c }

// Address returns host and port of the protocol, without TLS even where there is
// TLS too.
func (b *Broker) Address() string { return fmt.Sprintf("127.0.0.1:%d", b.s.service) }

// URL returns the address as a URL, of TLS where the broker has it.
func (b *Broker) URL() string {
	if b.s.c.TLS {
		return fmt.Sprintf("pulsar+ssl://127.0.0.1:%d", b.s.tlsPort)
	}
	return "pulsar://" + b.Address()
}

// PlainURL returns the address without TLS as a URL, of which a broker with TLS has
// one too.
func (b *Broker) PlainURL() string { return "pulsar://" + b.Address() }

// WebURL returns where the administration listens.
func (b *Broker) WebURL() string { return fmt.Sprintf("http://127.0.0.1:%d", b.s.web) }

// Log returns the end of the warnings and errors that the broker has logged since
// it was started last.
func (b *Broker) Log() string { return b.s.log() }

// Token returns a token for a role.
func (b *Broker) Token(role string) string { return b.s.secrets.token(role, time.Time{}) }

// TokenUntil returns a token for a role that ends at a time, in whole seconds.
func (b *Broker) TokenUntil(role string, ends time.Time) string { return b.s.secrets.token(role, ends) }

// CA returns the file with the authority that the broker's certificate is of.
func (b *Broker) CA() string { return b.s.secrets.path("ca.pem") }

// Certificate returns files with a certificate for a client and its key.
func (b *Broker) Certificate() (cert, key string) {
	return b.s.secrets.path("client.pem"), b.s.secrets.path("client-key.pem")
}

// Folder returns where its files are.
func (b *Broker) Folder() string { return filepath.Clean(b.s.folder) }
