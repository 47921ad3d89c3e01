// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML form of a service: strictly, with the position
// of everything that it holds, so that an error names the line, the field and
// the fix. The structs here are the form: the decoder, the JSON Schema and the
// suggestions for misspelt fields are all derived from their tags.
//
//	json      the field's name
//	doc       one line for people
//	required  "true": must be given
//	env       "true": references such as ${env:NAME} are replaced in its texts
//	enum      comma-separated texts, one of which it must be
//	min, max  the least value of a number or duration, and the most of a number
//	without   what holds where a whole number is left out; none by default
//	like, as  a pattern for the text, the texts of the list or the keys of the
//	          map, and how to say it
//
// They are those of pluginapi.SchemaOf where that has them.
package config

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// File is one service: its endpoints and what is done with what they deliver.
type File struct {
	Endpoints     map[string]*Endpoint `json:"endpoints" required:"true" doc:"The attached transports by the name that the rest of the file uses; each runs as a plugin process of its own." like:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" as:"letters, digits, - and _, at most 64"`
	Defaults      *Defaults            `json:"defaults" doc:"What holds for all subscriptions where neither they nor their endpoint's defaults say anything."`
	Subscriptions []*Subscription      `json:"subscriptions" required:"true" doc:"What is read, and what is done with each message."`

	name      string
	positions map[string]Position
}

// Endpoint is one attached transport.
type Endpoint struct {
	Transport string         `json:"transport" required:"true" doc:"The transport's name: the plugin is the file longshore-transport-<name>." like:"^[a-z0-9][a-z0-9_-]*$" as:"lower-case letters, digits, - and _"`
	Path      string         `json:"path" env:"true" doc:"The plugin's file, instead of looking for it by name."`
	Checksum  string         `json:"checksum" doc:"The plugin file's checksum; another file is not started." like:"^sha256:[0-9a-f]{64}$" as:"sha256: and 64 hexadecimal digits, as sha256sum prints them"`
	Env       []string       `json:"env" doc:"Names of environment variables that the plugin gets; it gets no others but a short list of harmless ones." like:"^[A-Za-z_][A-Za-z0-9_]*$" as:"the name of a variable"`
	Stdio     bool           `json:"stdio" doc:"The transport reads this process's standard input and writes its standard output. One endpoint at most."`
	Optional  bool           `json:"optional" doc:"The service goes on without this endpoint when its plugin keeps crashing, and tries it once a minute."`
	Settings  map[string]any `json:"settings" env:"true" doc:"The transport's own settings; longshore plugin describe NAME lists them."`
	Defaults  *Defaults      `json:"defaults" doc:"What holds for its subscriptions where they say nothing; before the defaults of the file."`
}

// Subscription is one thing to read and what is done with it.
type Subscription struct {
	From    string         `json:"from" required:"true" doc:"The endpoint to read from."`
	Name    string         `json:"name" required:"true" env:"true" doc:"What to read there: a topic, key, queue or filter."`
	Options map[string]any `json:"options" env:"true" doc:"The transport's own options of a subscription."`

	Forward *Destination `json:"forward" doc:"Publish each message here; beside exec: publish the command's standard output."`
	Exec    *Exec        `json:"exec" doc:"Run a command for each message."`

	RetryTo *Destination `json:"retry_to" doc:"Where copies go that are tried again; needed where nothing can be published to the source itself."`

	Policy
	NoDefaults bool `json:"no_defaults" doc:"Nothing of any defaults applies here."`
	Paused     bool `json:"paused" doc:"Everything is checked and opened, but nothing is read."`
}

// Destination is a name on an endpoint.
type Destination struct {
	To   string `json:"to" required:"true" doc:"The endpoint."`
	Name string `json:"name" required:"true" env:"true" doc:"The name to publish under there."`
}

// DeadLetter is a destination for messages that are given up.
type DeadLetter struct {
	To     string `json:"to" required:"true" doc:"The endpoint."`
	Name   string `json:"name" required:"true" env:"true" doc:"The name to publish under there."`
	Causes bool   `json:"causes" doc:"Say in x-longshore-* headers why it was given up, also where headers become part of the payload."`
}

// Exec is a command that is run for each message.
type Exec struct {
	Command     []string `json:"command" required:"true" doc:"The program and its arguments; no shell is involved."`
	Timeout     Duration `json:"timeout" doc:"When the command and what it started are ended and the message is tried again; 30s unless said otherwise." min:"1ms"`
	TrimNewline bool     `json:"trim_newline" doc:"Leave one line end at the end of the command's output out of the new payload; only beside forward."`

	OnExit map[string]string `json:"on_exit" doc:"What exit statuses mean, in place of what they mean otherwise." like:"^([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$" as:"an exit status from 1 to 255" enum:"retry,drop,dead_letter,give_up,snooze,fail_fast"`
}

// DefaultExecTimeout is how long a command may run unless the form says
// otherwise: long for a filter, short for something that hangs.
const DefaultExecTimeout = 30 * time.Second

// Duration is written as text such as 250ms, 1.5s or 2m.
type Duration = core.Duration

// Position is a place in the file, both from 1.
type Position struct{ Line, Column int }

// Name returns the name of the file as it was given to Load.
func (f *File) Name() string { return f.name }

// At returns the position of a field path such as
// "subscriptions[0].retry_to.to", or of the nearest thing around it that the
// file holds.
func (f *File) At(path string) Position {
	for ; path != ""; path = parent(path) {
		if p, ok := f.positions[path]; ok {
			return p
		}
	}
	return Position{Line: 1, Column: 1}
}

// Has reports whether the file holds a field path.
func (f *File) Has(path string) bool { _, ok := f.positions[path]; return ok }

// parent cuts the last step off a field path.
func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}
