// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the most that a file may hold: far above any service, far below
// what would hurt.
const maxFile = 1 << 20

// Load reads and checks the file. Its error is an *Error where the file could
// be read; lookup finds environment variables, as os.LookupEnv does.
func Load(path string, lookup func(string) (string, bool)) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read service file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read service file: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("read service file: %s is larger than %d bytes; is it a service file?", path, maxFile)
	}
	return Parse(path, text, lookup)
}

// Parse checks the text of a file. name stands in its errors.
func Parse(name string, text []byte, lookup func(string) (string, bool)) (*File, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, err)
	}
	if doc.Kind == 0 {
		return nil, &Error{File: name, Problems: []Problem{{
			Position: Position{1, 1}, Message: "the file is empty", Fix: "add endpoints and subscriptions",
		}}}
	}
	d := &decoder{lookup: lookup, positions: map[string]Position{}}
	file := &File{name: name}
	d.value(doc.Content[0], "", reflect.ValueOf(file).Elem(), field{typ: reflect.TypeFor[File]()})
	file.positions = d.positions
	if err := dec.Decode(&more); err == nil {
		d.fail(&more, "", "put each service into a file of its own", "a second document begins")
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, err)
	}
	d.problems = append(d.problems, check(file)...)
	if len(d.problems) > 0 {
		sortProblems(d.problems)
		return nil, &Error{File: name, Problems: d.problems}
	}
	return file, nil
}

// syntaxError wraps what the YAML parser says. It gives the line only within
// its text; a text of another form costs nothing but the line.
func syntaxError(name string, err error) *Error {
	line, message, fix := 1, strings.TrimPrefix(err.Error(), "yaml: "), "correct the YAML"
	if n, _ := fmt.Sscanf(message, "line %d:", &line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
		fix += " here or on the lines before"
	}
	return &Error{File: name, Problems: []Problem{{
		Position: Position{line, 1}, Message: message, Fix: fix,
	}}}
}
