// SPDX-License-Identifier: Apache-2.0

// Package mosquitto runs Mosquitto, the MQTT broker, for tests: each broker on
// a port of its own of this machine and in a folder of its own. Its command line
// clients are the far ends.
package mosquitto

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/tied"
)

// limit is how long a test waits for anything, on a busy machine.
const limit = 2 * time.Minute

// install is what a test says that finds a program missing.
const install = "run apt-get install mosquitto mosquitto-clients"

// The kit's own user, where a broker has users or an access list.
const (
	kitUser     = "kit"
	kitPassword = "kit"
)

// Config is what a broker is started with. Without anything it lets everybody
// in, keeps nothing on disk, and neither its queues nor what is on its way have
// a limit.
type Config struct {
	// Lines are added to its configuration file, those of its one listener too;
	// a number that is there already is replaced.
	Lines []string
	// Persistent keeps sessions and messages over Stop and Start.
	Persistent bool
	// Users are names and passwords; nobody else is let in.
	Users map[string]string
	// ACL are the lines of its access list. What it does not allow is refused.
	ACL []string
	// TLS has it listen with a certificate for localhost and 127.0.0.1.
	TLS bool
	// ClientCertificates asks every client for one of Broker.Certificate, with TLS.
	ClientCertificates bool
	// Quiet leaves the packets out of its log, for load.
	Quiet bool
}

// Broker is a broker, which ends with the test. Its methods are called by the
// test's goroutine; they fail the test where something goes wrong.
type Broker struct {
	*log

	tb     testing.TB
	c      Config
	folder string
	port   int
	ended  chan struct{} // closed when the process is gone
	cmd    *exec.Cmd
	tls    *certificates
	names  atomic.Int64 // of clients and markers so far
}

// Start starts a broker that serves when it returns. Where Mosquitto is missing,
// it fails the test and names what to install.
func Start(tb testing.TB, c Config) *Broker {
	tb.Helper()
	b := &Broker{tb: tb, folder: tb.TempDir(), port: freeport.Hold(tb)}
	b.Configure(c)
	b.Start()
	tb.Cleanup(b.end)
	return b
}

// Configure sets what Start starts the broker with, and what Reload reads.
func (b *Broker) Configure(c Config) {
	b.tb.Helper()
	b.c = c
	if c.TLS && b.tls == nil {
		b.tls = newCertificates(b.tb, b.folder)
	}
	b.write("mosquitto.conf", b.configuration()...)
}

// program returns the path of one of Mosquitto's programs. Debian has the broker
// where only root's PATH leads.
func program(tb testing.TB, name string) string {
	tb.Helper()
	for _, path := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	tb.Fatalf("%s is missing: %s", name, install)
	return ""
}

// configuration are the lines of the file that it reads.
func (b *Broker) configuration() []string {
	lines := []string{
		fmt.Sprintf("listener %d 127.0.0.1", b.port),
		"user root", // else root's broker could not read its folder
		"log_dest stderr", "log_timestamp false",
		"max_inflight_messages 0", "max_queued_messages 0",
		fmt.Sprintf("persistence %t", b.c.Persistent),
	}
	if b.c.Persistent {
		lines = append(lines, "persistence_location "+b.folder+"/")
	}
	for _, kind := range b.kinds() {
		lines = append(lines, "log_type "+kind)
	}
	if len(b.c.ACL) > 0 {
		lines = append(lines, "acl_file "+b.write("acl", append([]string{"user " + kitUser, "topic readwrite #"}, b.c.ACL...)...))
	}
	if b.private() {
		lines = append(lines, "allow_anonymous false", "password_file "+b.passwords())
	} else {
		lines = append(lines, "allow_anonymous true")
	}
	if b.tls != nil {
		lines = append(lines, b.tls.lines(b.c.ClientCertificates)...)
	}
	return append(lines, b.c.Lines...)
}

// private says whether the kit has to say who it is.
func (b *Broker) private() bool { return len(b.c.Users) > 0 || len(b.c.ACL) > 0 }

// kinds are the kinds of log lines.
func (b *Broker) kinds() []string {
	if b.c.Quiet {
		return []string{"error", "warning", "notice", "information", "subscribe", "unsubscribe"}
	}
	return []string{"all"}
}

// passwords writes the password file.
func (b *Broker) passwords() string {
	users := map[string]string{kitUser: kitPassword}
	maps.Copy(users, b.c.Users)
	path := filepath.Join(b.folder, "passwords")
	args := []string{"-c", "-b", path}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if out, err := exec.Command(program(b.tb, "mosquitto_passwd"), append(args, name, users[name])...).CombinedOutput(); err != nil {
			b.tb.Fatalf("write the passwords: %v: %s", err, out)
		}
		args = []string{"-b", path}
	}
	return path
}

// write writes a file of lines into the folder.
func (b *Broker) write(name string, lines ...string) (path string) {
	b.tb.Helper()
	path = filepath.Join(b.folder, name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		b.tb.Fatal(err)
	}
	return path
}

// Start starts a broker again that was stopped or killed, on the same port and in
// the same folder.
func (b *Broker) Start() {
	b.tb.Helper()
	b.log = newLog(b.tb)
	cmd := exec.Command(program(b.tb, "mosquitto"), "-c", filepath.Join(b.folder, "mosquitto.conf"))
	cmd.SysProcAttr = tied.Attributes()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.tb.Fatal(err)
	}
	started, ended := make(chan error, 1), make(chan struct{})
	read := b.log
	go func() {
		defer close(ended)
		defer tied.Pin()()
		err := cmd.Start()
		started <- err
		if err == nil {
			read.take(stderr)
			_ = cmd.Wait() // it is told to end
		}
		read.end()
	}()
	if err := <-started; err != nil {
		b.tb.Fatalf("start the broker: %v", err)
	}
	b.cmd, b.ended = cmd, ended
	if !b.wait(1, "mosquitto version", "running") {
		b.tb.Fatalf("the broker does not serve:\n%s", b.log)
	}
}

// Stop has the broker end as a service manager does, and waits for its end: what
// it keeps is on disk.
func (b *Broker) Stop() {
	b.tb.Helper()
	b.signal(syscall.SIGTERM)
}

// Kill kills the broker and waits for its end: what it had not written is gone.
func (b *Broker) Kill() {
	b.tb.Helper()
	b.signal(syscall.SIGKILL)
}

// Reload sets what the broker runs with, and has it read its users and its access
// list again: who may not be connected any more is not.
func (b *Broker) Reload(c Config) {
	b.tb.Helper()
	b.Configure(c)
	before := len(b.Lines("Reloading config"))
	if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		b.tb.Fatalf("signal the broker: %v", err)
	}
	b.Await(before+1, "Reloading config")
}

// signal sends a signal until the broker has ended: one that comes right behind its
// start is lost on it, since it says that it runs before it looks at signals.
func (b *Broker) signal(s os.Signal) {
	b.tb.Helper()
	timer, again := time.NewTimer(limit), time.NewTicker(100*time.Millisecond)
	defer timer.Stop()
	defer again.Stop()
	for {
		if err := b.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			b.tb.Fatalf("signal the broker: %v", err)
		}
		select {
		case <-b.ended:
			return
		case <-again.C:
		case <-timer.C:
			_ = b.cmd.Process.Kill()
			b.tb.Fatalf("the broker does not end:\n%s", b.log)
		}
	}
}

// end ends the broker with the test.
func (b *Broker) end() {
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.ended
	if b.tb.Failed() {
		_, _ = io.WriteString(b.tb.Output(), "the broker's log:\n"+b.String())
	}
}

// Port returns the port that it listens on.
func (b *Broker) Port() int { return b.port }

// Address returns host and port.
func (b *Broker) Address() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// URL returns the address as a URL, without a user.
func (b *Broker) URL() string {
	if b.tls != nil {
		return "mqtts://" + b.Address()
	}
	return "mqtt://" + b.Address()
}

// Folder returns where its files are.
func (b *Broker) Folder() string { return b.folder }

// CA returns the file with the authority that its certificate is of, with TLS.
func (b *Broker) CA() string { return b.tls.ca }

// Certificate returns files with a certificate for a client and its key, with
// TLS.
func (b *Broker) Certificate() (cert, key string) { return b.tls.client, b.tls.clientKey }

// name returns a name that was not used yet.
func (b *Broker) name(kind string) string { return fmt.Sprintf("kit-%s-%d", kind, b.names.Add(1)) }

// client returns what a client's command begins with.
func (b *Broker) client(id string) []string {
	args := []string{"-V", "mqttv5", "-h", "127.0.0.1", "-p", fmt.Sprint(b.port), "-i", id}
	if b.private() {
		args = append(args, "-u", kitUser, "-P", kitPassword)
	}
	if b.tls != nil {
		args = append(args, "--cafile", b.tls.ca)
		if b.c.ClientCertificates {
			args = append(args, "--cert", b.tls.client, "--key", b.tls.clientKey)
		}
	}
	return args
}
