// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/tied"
)

// Limit is how long a test waits for what must come, on a busy machine with the race
// detector on.
const Limit = 3 * time.Minute

//go:embed standalone.conf
var standalone string

//go:embed log4j2.xml
var logging []byte

// Config is what a broker is started with. Without anything it lets everybody in.
type Config struct {
	// Lines are added to its configuration file, as "name=value"; a name that is
	// there already is replaced.
	Lines []string
	// Tokens has it let in only who has one of Broker.Token.
	Tokens bool
	// Authorize lets roles do only what Broker.Grant has granted, with Tokens or
	// ClientCertificates. The role "admin" may do everything.
	Authorize bool
	// TLS has URL be one of TLS, with a certificate for localhost and 127.0.0.1.
	TLS bool
	// ClientCertificates asks every client for one of Broker.Certificate, with TLS;
	// its role is "client".
	ClientCertificates bool
	// Load is for measurements: a broker that takes longer to start and more memory,
	// and is as fast as the machine allows.
	Load bool
	// Archive is a file into which the classes that it has loaded are archived when it
	// is stopped.
	Archive string
}

// server is a broker's process, and what it keeps over its lives.
type server struct {
	c       Config
	folder  string
	service int // its ports
	tlsPort int
	web     int
	bookie  int
	held    []func() error // give the ports back
	secrets *secrets
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	client  *http.Client
}

// newServer makes a broker in a folder that there is; it is not started.
func newServer(c Config, folder string) (*server, error) {
	s := &server{c: c, folder: folder, client: &http.Client{Timeout: Limit, Transport: &http.Transport{DisableKeepAlives: true}}}
	var err error
	if s.secrets, err = newSecrets(filepath.Join(folder, "secrets")); err != nil {
		return nil, err
	}
	return s, os.WriteFile(filepath.Join(folder, "log4j2.xml"), logging, 0o600)
}

// start starts it for the first time, on ports that are its own until end.
func (s *server) start() error {
	for _, port := range []*int{&s.service, &s.tlsPort, &s.web, &s.bookie} {
		held, release, err := freeport.Reserve()
		if err != nil {
			return err
		}
		*port, s.held = held, append(s.held, release)
	}
	return s.again()
}

// end kills it for good, and gives its ports back.
func (s *server) end() error {
	s.kill()
	var errs []error
	for _, release := range s.held {
		errs = append(errs, release())
	}
	s.held = nil
	return errors.Join(errs...)
}

// path is one of its files or folders.
func (s *server) path(name string) string { return filepath.Join(s.folder, name) }

// again starts it, on the ports and in the folder that it has, and waits until it
// serves.
func (s *server) again() error {
	cmd, err := s.command()
	if err != nil {
		return err
	}
	out, err := os.Create(s.path("log"))
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, tied.Attributes()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		defer tied.Pin()()
		err := cmd.Start()
		_ = out.Close() // the process has its own
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is told to end
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	s.cmd, s.ended = cmd, ended
	if err := s.serves(); err != nil {
		s.kill()
		return err
	}
	return nil
}

// command returns the command of a broker, whose configuration it writes.
func (s *server) command() (*exec.Cmd, error) {
	path := s.path("standalone.conf")
	if err := os.WriteFile(path, []byte(s.configuration()), 0o600); err != nil {
		return nil, err
	}
	cmd, err := java(s.c, s.folder)
	if err != nil {
		return nil, err
	}
	cmd.Dir = s.folder
	cmd.Args = append(cmd.Args, "org.apache.pulsar.PulsarStandaloneStarter", "--config", path, "--no-functions-worker", "--no-stream-storage",
		"--metadata-dir", s.path("metadata"), "--bookkeeper-dir", s.path("bookkeeper"), "--bookkeeper-port", strconv.Itoa(s.bookie))
	return cmd, nil
}

// configuration is the file that it reads.
func (s *server) configuration() string {
	lines := strings.Split(standalone, "\n")
	lines = append(lines, fmt.Sprintf("brokerServicePort=%d", s.service), fmt.Sprintf("webServicePort=%d", s.web))
	lines = append(lines, s.secrets.lines(s.c, s.tlsPort)...)
	lines = append(lines, s.c.Lines...) // the last of a name counts
	return strings.Join(lines, "\n") + "\n"
}

// serves waits until it does.
func (s *server) serves() error {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		// The last thing that it makes when it starts.
		err := s.admin(ctx, http.MethodGet, "namespaces/public/default", nil, nil)
		if err == nil {
			err = s.stores(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-s.ended:
			return errors.New("the broker has ended:\n" + s.log())
		case <-ctx.Done():
			return fmt.Errorf("the broker does not serve: %w:\n%s", err, s.log())
		}
	}
}

// stores has it make and delete a topic. A topic needs a ledger, and a ledger a
// bookie: a broker may answer although it has none.
func (s *server) stores(ctx context.Context) error {
	topic := path("public/default/longshore-kit")
	// One that is there is from a life that ended here; without it the next try succeeds.
	err := s.admin(ctx, http.MethodPut, topic, nil, nil)
	return errors.Join(err, s.admin(ctx, http.MethodDelete, topic+"?force=true", nil, nil))
}

// log returns the end of what it has logged since it was started last: warnings
// and errors.
func (s *server) log() string {
	const most = 16 << 10
	f, err := os.Open(s.path("log"))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-most), io.SeekStart)
	}
	text, _ := io.ReadAll(f) // what there is
	return string(text)
}

// stop has it end as a service manager does, and waits for its end.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case <-s.ended:
		return nil
	case <-timer.C:
		s.kill()
		return errors.New("the broker does not end:\n" + s.log())
	}
}

// kill kills it and waits for its end.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}
