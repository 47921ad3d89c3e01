// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// settings of an endpoint.
type settings struct {
	dir     string // where the queues are kept
	lie     string // "" = honest, but for a file beside the executable
	stalled string // destination that never answers
	hold    string // how long a delivery may stay unsettled; "" = for ever
	requeue string // "rewinds" = it makes void what was delivered from behind it
	cut     string // file whose every change of size cuts the connection
	token   string // a secret that opens nothing
}

const settingsSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["dir"],
  "properties": {
    "dir": {"type": "string", "minLength": 1, "description": "folder that the queues are kept in; made where it is missing"},
    "lie": {"type": "string", "default": "", "description": "name of a way to break the protocol"},
    "stalled": {"type": "string", "default": "", "description": "destination that never answers"},
    "hold": {"type": "string", "default": "", "description": "how long a delivery may stay unsettled, as 1500ms; for ever without it"},
    "requeue": {"type": "string", "enum": ["", "rewinds"], "default": "", "description": "rewinds: what was delivered from behind it is void and comes again"},
    "cut": {"type": "string", "default": "", "description": "file whose every change of size cuts the connection to the queues"},
    "token": {"type": "string", "default": "", "writeOnly": true, "x-longshore-secret": true, "description": "secret that is asked for nowhere"}
  }
}`

// noOptions is the schema of options where there are none.
const noOptions = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {}
}`

// readSettings returns the settings and all that is wrong with them.
func readSettings(text []byte) (settings, []*pb.Diagnostic) {
	var s settings
	fields := map[string]*string{"dir": &s.dir, "lie": &s.lie, "stalled": &s.stalled, "hold": &s.hold, "requeue": &s.requeue, "cut": &s.cut, "token": &s.token}
	given, wrong := object(text)
	if wrong != nil {
		return s, []*pb.Diagnostic{wrong}
	}
	var all []*pb.Diagnostic
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, ok := fields[name]
		if !ok {
			all = append(all, unknownField(name, slices.Sorted(maps.Keys(fields))))
			continue
		}
		var value any
		_ = json.Unmarshal(given[name], &value) // it is part of valid JSON
		if text, ok := value.(string); ok {
			*field = text
			continue
		}
		all = append(all, &pb.Diagnostic{Path: name, Message: "is no string", Fix: "write it in quotes"})
	}
	if _, ok := given["dir"]; !ok {
		all = append(all, &pb.Diagnostic{Path: "dir", Message: "is missing", Fix: "name the folder that the queues are kept in"})
	} else if s.dir == "" && !slices.ContainsFunc(all, func(d *pb.Diagnostic) bool { return d.GetPath() == "dir" }) {
		all = append(all, &pb.Diagnostic{Path: "dir", Message: "is empty", Fix: "name the folder that the queues are kept in"})
	}
	if d, err := time.ParseDuration(s.hold); s.hold != "" && (err != nil || d <= 0 || d >= longestHold) {
		all = append(all, &pb.Diagnostic{Path: "hold", Message: "is no time between 0 and " + longestHold.String(), Fix: "write it as 1500ms"})
	}
	if s.requeue != "" && s.requeue != requeueRewinds {
		all = append(all, &pb.Diagnostic{Path: "requeue", Message: fmt.Sprintf("there is no %q", s.requeue), Fix: "write " + requeueRewinds + ", or leave it out"})
	}
	if _, ok := liar.Find(s.lie); !ok {
		all = append(all, &pb.Diagnostic{Path: "lie", Message: fmt.Sprintf("there is no lie %q", s.lie), Fix: "leave it out to be honest"})
	}
	return s, all
}

// readOptions returns what is wrong with options where there are none to give.
func readOptions(text []byte) []*pb.Diagnostic {
	given, wrong := object(text)
	if wrong != nil {
		return []*pb.Diagnostic{wrong}
	}
	var all []*pb.Diagnostic
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all = append(all, unknownField(name, nil))
	}
	return all
}

// object reads one JSON object; nothing at all is an empty one.
func object(text []byte) (map[string]json.RawMessage, *pb.Diagnostic) {
	if len(text) == 0 {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, &pb.Diagnostic{Message: "is no JSON object", Fix: "give one object with a member for each field"}
	}
	return fields, nil
}

func unknownField(name string, known []string) *pb.Diagnostic {
	fix := "leave it out, there are no options"
	if len(known) > 0 {
		fix = "the fields are " + strings.Join(known, ", ")
	}
	return &pb.Diagnostic{Path: name, Message: "there is no such field", Fix: fix}
}
