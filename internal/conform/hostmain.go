// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// victimLife is how long a host that is to be killed waits for that.
const victimLife = 2 * time.Minute

// victimOrder tells a host that is to be killed what to do.
type victimOrder struct {
	Path         string          `json:"path"`
	Env          []string        `json:"env,omitempty"`
	Settings     json.RawMessage `json:"settings"`
	Options      json.RawMessage `json:"options,omitempty"`
	Send         json.RawMessage `json:"send,omitempty"`
	Subscription string          `json:"subscription"`
	Destination  string          `json:"destination"`
	Word         string          `json:"word"`
	Stdio        bool            `json:"stdio,omitempty"`
	Publishes    bool            `json:"publishes,omitempty"` // the messages itself; else they come from outside
	Messages     int             `json:"messages"`
	Settle       int             `json:"settle"` // how many of them
	Wait         time.Duration   `json:"wait"`
}

// victimWord is what it says: first that it is subscribed, then how far it is.
type victimWord struct {
	Subscribed bool     `json:"subscribed,omitempty"`
	PID        int      `json:"pid,omitempty"` // of the plugin
	Settled    []string `json:"settled,omitempty"`
	Open       []string `json:"open,omitempty"`
	Faults     []string `json:"faults,omitempty"`
}

// HostMain acts as a host that is killed: it does what in says, reports on out,
// and waits for its end. It returns only where something went wrong.
func HostMain(ctx context.Context, in io.Reader, out io.Writer) error {
	var o victimOrder
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read the order of a host that is to be killed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, victimLife)
	defer cancel()
	s := Subject{Path: o.Path, Env: o.Env, Subscription: o.Subscription, Destination: o.Destination, Wait: o.Wait}.withDefaults()
	t := newTrial(ctx, s, Options{}, o.Word)
	t.Settings, t.Options, t.Send = o.Settings, o.Options, o.Send
	t.About = &About{
		Subject: s, Describe: &transportpb.DescribeResponse{WantsStdio: o.Stdio},
		Profiles: []core.Capabilities{{}}, Publishing: &core.Publishing{},
	}
	say := json.NewEncoder(out)
	defer t.clean()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopTrial); !ok {
				panic(p)
			}
			_ = say.Encode(victimWord{Faults: t.faults}) // it ends right away
		}
	}()
	p := t.Connected()
	sub := p.Subscribe()
	if err := say.Encode(victimWord{Subscribed: true}); err != nil {
		return err
	}
	if o.Publishes {
		t.Feed(p, o.Messages)
	}
	word := victimWord{PID: p.PID()}
	ds := sub.Take(o.Messages)
	for i, d := range ds {
		if i >= o.Settle {
			word.Open = append(word.Open, d.Key)
			continue
		}
		sub.Done(d, core.VerdictAck)
		word.Settled = append(word.Settled, d.Key)
	}
	word.Faults = t.faults
	if err := say.Encode(word); err != nil {
		return err
	}
	<-ctx.Done()
	return fmt.Errorf("nobody killed this host within %v", victimLife)
}

// victim is a host that is to be killed.
type victim struct {
	t     *Trial
	cmd   *exec.Cmd
	words *bufio.Scanner
	once  sync.Once
}

// victim starts a host that subscribes, receives n messages and settles the
// first of them.
func (t *Trial) victim(n, settle int) *victim {
	command, err := t.options.Host()
	if err != nil {
		t.Fatalf("the suite has no host to kill: %v", err)
	}
	order, err := json.Marshal(victimOrder{
		Path: t.Subject.Path, Env: t.Subject.Env, Settings: t.Settings, Options: t.Options, Send: t.Send,
		Subscription: t.Subscription(), Destination: t.Destination(), Word: t.Word, Stdio: t.About.Describe.GetWantsStdio(),
		Publishes: t.Subject.Inject == nil, Messages: n, Settle: settle, Wait: t.Subject.Wait,
	})
	if err != nil {
		t.Fatalf("write the order of the host that is to be killed: %v", err)
	}
	v := &victim{t: t, cmd: exec.CommandContext(t.Ctx, command[0], command[1:]...)}
	v.cmd.Stderr = nil
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := v.cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		if out, err = v.cmd.StdoutPipe(); err == nil {
			v.words = bufio.NewScanner(out)
			v.words.Buffer(nil, frame.MaxControl)
			err = v.cmd.Start()
		}
	}
	if err != nil {
		t.Fatalf("start the host that is to be killed: %v", err)
	}
	t.cleanup(v.kill)
	if _, err := in.Write(order); err != nil {
		t.Fatalf("tell the host that is to be killed what to do: %v", err)
	}
	_ = in.Close()
	return v
}

// next waits for what the host says next.
func (v *victim) next() victimWord {
	type line struct {
		word victimWord
		err  error
	}
	said := make(chan line, 1)
	go func() {
		var l line
		if v.words.Scan() {
			l.err = json.Unmarshal(v.words.Bytes(), &l.word)
		} else if l.err = v.words.Err(); l.err == nil {
			l.err = io.EOF
		}
		said <- l
	}()
	ctx, cancel := v.t.limited()
	defer cancel()
	select {
	case l := <-said:
		for _, f := range l.word.Faults {
			v.t.Errorf("under a host of its own: %s", f)
		}
		if l.err != nil || len(l.word.Faults) > 0 {
			v.t.Fatalf("the host that is to be killed did not come as far as that: %v", l.err)
		}
		return l.word
	case <-ctx.Done():
		v.t.Fatalf("the host that is to be killed says nothing for %v", v.t.Subject.Wait)
	}
	return victimWord{}
}

// kill kills the host with SIGKILL and reaps it. Its plugin is nobody's child
// then.
func (v *victim) kill() {
	v.once.Do(func() {
		_ = v.cmd.Process.Signal(os.Kill) // it may have ended
		_ = v.cmd.Wait()                  // killed
	})
}
