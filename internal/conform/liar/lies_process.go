// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"fmt"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func processLies() []Lie {
	return []Lie{
		{Name: "wrong-cookie-serves", Wrong: "serves whatever the cookie is", Cases: []string{"process/cookie"},
			tell: func(c *Conduct) { c.AnyCookie = true }},
		{Name: "any-version-serves", Wrong: "serves hosts that speak other versions only", Cases: []string{"process/protocol-older"},
			tell: func(c *Conduct) { c.AnyVersion = true }},
		{Name: "announces-newest", Wrong: "announces the newest version that the host speaks in place of its own", Cases: []string{"process/protocol-newer"},
			tell: func(c *Conduct) { c.Newest = true }},
		{Name: "dies-on-term", Wrong: "does not ignore TERM", Cases: []string{"process/signals"},
			tell: func(c *Conduct) { c.TakesSignals = true }},
		{Name: "ignores-leash", Wrong: "goes on when the host is gone", Cases: []string{"process/leash", "kill/host"},
			tell: func(c *Conduct) { c.IgnoresLeash = true }},
		{Name: "leaves-process", Wrong: "leaves a child in a session of its own", Cases: []string{"process/leash", "kill/host"},
			tell: func(c *Conduct) { c.LeavesChild = true }},
		{Name: "exits-on-close", Wrong: "exits behind Close before the leash ends", Cases: []string{"process/stays"},
			tell: func(c *Conduct) { c.ExitsOnClose = true }},
		{Name: "keeps-run-dir", Wrong: "leaves the folder of its generation behind", Cases: []string{"process/leash"},
			tell: func(c *Conduct) { c.KeepsRunDir = true }},
		{Name: "cuts-log", Wrong: "writes long records of its log as several lines", Cases: []string{"process/long-log-line"},
			tell: func(c *Conduct) { c.CutsLog = true }},
		{Name: "stdout-noise", Wrong: "prints to standard output behind the handshake", Cases: []string{"process/stdout"},
			tell: func(c *Conduct) { c.Noisy = true }},
		{Name: "secret-in-log", Wrong: "logs its settings with the secret in them", Cases: []string{"settings/secret-not-logged"},
			tell: func(c *Conduct) { c.LogsSecrets = true }},
		{Name: "leaks", Wrong: "keeps a descriptor and 64 KiB of each subscription", Cases: []string{"leak/subscribe-close"},
			tell: func(c *Conduct) { c.Leaks = true }},
		{Name: "leaks-cancelled", Wrong: "keeps a descriptor of each subscription that is cancelled", Cases: []string{"leak/subscribe-close"},
			tell: func(c *Conduct) { c.LeaksCut = true }},
		{Name: "no-beats", Wrong: "answers no heartbeat while a subscription waits for messages", Cases: []string{"process/beats"},
			tell: func(c *Conduct) { c.MissesBeats = true }},
		{Name: "wrong-beats", Wrong: "answers heartbeats with numbers that were not sent", Cases: []string{"process/beats"},
			tell: func(c *Conduct) { c.Beat = func(n uint64) uint64 { return n + 1000 } }},
		{Name: "no-link", Wrong: "reports no link state though it says that it does", Cases: []string{"process/link"},
			tell: func(c *Conduct) { c.NoLink = true }},
	}
}

func callLies() []Lie {
	return []Lie{
		{Name: "slow-describe", Wrong: "takes two seconds to say what it is", Cases: []string{"setup/no-io"},
			tell: func(c *Conduct) { c.DescribeTakes = 2 * time.Second }},
		{Name: "describe-changes", Wrong: "says something else each time", Cases: []string{"describe/stable"},
			tell: func(c *Conduct) {
				c.Describe = func(r *pb.DescribeResponse, call int) { r.Version = fmt.Sprintf("%s.%d", r.GetVersion(), call) }
			}},
		{Name: "io-in-configure", Wrong: "opens a file and a socket in Configure", Cases: []string{"setup/no-io"},
			tell: func(c *Conduct) { c.ConfigureIO = true }},
		{Name: "io-in-inspect", Wrong: "opens a file and a socket in Inspect", Cases: []string{"setup/no-io"},
			tell: func(c *Conduct) { c.InspectIO = true }},
		{Name: "vague-settings", Wrong: "refuses settings without naming the fields", Cases: []string{"settings/wrong-type"},
			tell: func(c *Conduct) { c.Diagnostics = func([]*pb.Diagnostic) []*pb.Diagnostic { return nil } }},
		{Name: "one-setting-at-a-time", Wrong: "names the first wrong field alone", Cases: []string{"settings/all-at-once"},
			tell: func(c *Conduct) {
				c.Diagnostics = func(ds []*pb.Diagnostic) []*pb.Diagnostic { return ds[:min(len(ds), 1)] }
			}},
		{Name: "takes-unknown-settings", Wrong: "accepts settings that there are not", Cases: []string{"settings/unknown-field"},
			tell: func(c *Conduct) { c.TakesUnknown = true }},
		{Name: "wrong-index", Wrong: "answers one report less where several are asked for", Cases: []string{"inspect/index"},
			tell: func(c *Conduct) {
				c.Inspect = func(r *pb.InspectResponse) {
					if n := len(r.GetRegistrations()); n > 1 {
						r.Registrations = r.GetRegistrations()[:n-1]
					}
					if n := len(r.GetDestinations()); n > 1 {
						r.Destinations = r.GetDestinations()[:n-1]
					}
				}
			}},
		{Name: "wrong-address", Wrong: "names an address from which nothing returns", Cases: []string{"copy/address"},
			tell: func(c *Conduct) {
				c.Inspect = func(r *pb.InspectResponse) {
					for _, g := range r.GetRegistrations() {
						for _, p := range g.GetProfiles() {
							p.Address += "-elsewhere"
						}
					}
				}
				c.Started = func(s *pb.Started) {
					for _, p := range s.GetProfiles() {
						p.Address += "-elsewhere"
					}
				}
			}},
		{Name: "wider-started", Wrong: "promises more in Started than in Inspect", Cases: []string{"inspect/started-narrows"},
			tell: func(c *Conduct) {
				c.Started = func(s *pb.Started) {
					for _, p := range s.GetProfiles() {
						p.MaxDelay *= 2
					}
				}
			}},
		{Name: "no-conflict", Wrong: "takes Configure, Connect and streams a second time", Cases: []string{"setup/order"},
			tell: func(c *Conduct) { c.Repeatable = true }},
		{Name: "answers-all", Wrong: "answers requests and seeks, which it does not serve", Cases: []string{"honesty/seek", "honesty/request"},
			tell: func(c *Conduct) { c.AnswersAll = true }},
	}
}
