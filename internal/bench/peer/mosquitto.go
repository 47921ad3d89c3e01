// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/freeport"
)

// Mosquitto is a server of MQTT that runs.
type Mosquitto struct {
	Address string // host and port

	cmd     *exec.Cmd
	stderr  *tail
	release func() error  // of its port, which is kept as long as the server lives
	over    chan struct{} // closed when it has ended
	err     error         // it has ended with
}

// startLimit bounds the wait for the server, many times what it takes.
const startLimit = 2 * time.Minute

// dialEvery is how often the server is dialed meanwhile.
const dialEvery = 10 * time.Millisecond

// StartMosquitto starts a server with a file of settings in a folder. It keeps
// nothing on disk and has as much queued and in flight as comes; clients still
// have their receive maximum. lines are further settings. The error of a machine
// without it names the command that installs it on Debian.
func StartMosquitto(ctx context.Context, folder string, lines ...string) (*Mosquitto, error) {
	number, release, err := freeport.Reserve()
	if err != nil {
		return nil, err
	}
	host, port := "127.0.0.1", strconv.Itoa(number)
	m := &Mosquitto{Address: net.JoinHostPort(host, port), stderr: &tail{}, release: release, over: make(chan struct{})}
	lines = append([]string{
		"listener " + port + " " + host, "allow_anonymous true", "persistence false", "max_queued_messages 0", "max_inflight_messages 0",
	}, lines...)
	settings := filepath.Join(folder, "mosquitto-"+port+".conf")
	if err := os.WriteFile(settings, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, release())
	}
	m.cmd = exec.CommandContext(ctx, mosquitto(), "-c", settings) //nolint:gosec // the folder is the caller's
	m.cmd.Stderr = m.stderr
	if err := m.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server of MQTT: %w; apt-get install mosquitto", err), release())
	}
	go func() {
		defer close(m.over)
		m.err = m.cmd.Wait()
	}()
	if err := m.await(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start mosquitto: %w: %s", err, m.stderr), m.Close())
	}
	return m, nil
}

// mosquitto is the program's path: Debian's folder of servers is not in
// everybody's PATH.
func mosquitto() string {
	if path, err := exec.LookPath("mosquitto"); err == nil {
		return path
	}
	return "/usr/sbin/mosquitto"
}

// await waits until the server can be dialed.
func (m *Mosquitto) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	every := time.NewTicker(dialEvery)
	defer every.Stop()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", m.Address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-m.over:
			return errors.New("it has ended")
		case <-every.C:
		}
	}
}

// PID is the server's.
func (m *Mosquitto) PID() int { return m.cmd.Process.Pid }

// Close ends the server, or says how it has ended by itself.
func (m *Mosquitto) Close() error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	<-m.over
	if err := m.release(); err != nil {
		return err
	}
	if m.err != nil {
		return fmt.Errorf("end mosquitto: %w: %s", m.err, m.stderr)
	}
	return nil
}
