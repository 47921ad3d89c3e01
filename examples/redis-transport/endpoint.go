// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// endpoint is one server, configured and not connected.
type endpoint struct {
	settings settings
	log      *slog.Logger
}

// Inspect says what each stream can do. Streams and groups are made when they are
// needed, so any name is good.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	var in pluginapi.Inspection
	groups := make([]string, len(u.Registrations))
	for i, r := range u.Registrations {
		report := pluginapi.RegistrationReport{
			Profiles: []core.Capabilities{capabilities(r.Name, time.Duration(e.settings.Hold), e.settings.Durable)},
			Findings: nameFindings(r.Name),
		}
		o, err := e.options(r)
		if err != nil {
			report.Findings = append(report.Findings, pluginapi.Finding{Message: err.Error(), Fix: "see the options' schema"})
		}
		groups[i] = o.Group
		in.Registrations = append(in.Registrations, report)
	}
	for i, r := range u.Registrations {
		for j, other := range u.Registrations {
			if i != j && r.Name == other.Name && groups[i] == groups[j] {
				in.Registrations[i].Shares = append(in.Registrations[i].Shares, other.ID)
			}
		}
	}
	for _, t := range u.Destinations {
		report := pluginapi.TargetReport{Publishing: publishing, Findings: nameFindings(t.Name)}
		for _, r := range u.Registrations {
			if r.Name == t.Name {
				report.ReturnsTo = append(report.ReturnsTo, r.ID)
			}
		}
		report.Exactly = report.ReturnsTo // a name is one stream, never a pattern
		in.Destinations = append(in.Destinations, report)
	}
	return in
}

func nameFindings(name string) []pluginapi.Finding {
	if name != "" {
		return nil
	}
	return []pluginapi.Finding{{Option: "name", Message: "is empty", Fix: "name the stream's key"}}
}

// options are those of one subscription, with the endpoint's for what it leaves
// out.
func (e *endpoint) options(r pluginapi.Registration) (options, error) {
	var o options
	err := r.Options.Bind(&o)
	if o.Group == "" {
		o.Group = e.settings.Group
	}
	return o, err
}

// Connect reaches the server and asks it what it is.
func (e *endpoint) Connect(ctx context.Context, _ []byte) (pluginapi.Conn, error) {
	c := &conn{endpoint: e, client: redis.NewClient(e.clientOptions()), consumer: consumerName(), subs: make(map[*subscription]bool)}
	if err := c.learn(ctx); err != nil {
		_ = c.client.Close()
		return nil, err
	}
	return c, nil
}

// clientOptions are those of every connection. Nothing is retried by the client: a
// publish that was sent twice is two messages, and an ack that was answered and
// not heard would look as if it came too late.
func (e *endpoint) clientOptions() *redis.Options {
	s := &e.settings
	o := &redis.Options{
		Network: "tcp", Addr: s.Address,
		Username: s.Username, Password: s.Password.Reveal(), DB: s.DB,
		Protocol:   2,
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: time.Duration(s.Timeout), ReadTimeout: time.Duration(s.Timeout), WriteTimeout: time.Duration(s.Timeout),
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if path, ok := strings.CutPrefix(s.Address, "unix:"); ok {
		o.Network, o.Addr = "unix", path
	}
	if s.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

// consumerName is this process in its groups: no other process, not even the next
// life of this one, may settle what it holds.
func consumerName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}
