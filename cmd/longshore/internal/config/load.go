// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the most that a file may hold: far above any service, far below
// what would hurt.
const maxFile = 1 << 20

// Load reads and checks the file. Its error is an *Error where the file could
// be read; lookup finds environment variables, as os.LookupEnv does.
func Load(path string, lookup func(string) (string, bool)) (*File, error) {
	text, err := read(path, "service file")
	if err != nil {
		return nil, err
	}
	return Parse(path, text, lookup)
}

// read reads a file, which what names.
func read(path, what string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("read %s: %s is larger than %d bytes; is it a %s?", what, path, maxFile, what)
	}
	return text, nil
}

// Parse checks the text of a file. name stands in its errors.
func Parse(name string, text []byte, lookup func(string) (string, bool)) (*File, error) {
	file := &File{name: name}
	d, err := decode(name, text, lookup, reflect.ValueOf(file).Elem(), "add endpoints and subscriptions", "put each service into a file of its own")
	if err != nil {
		return nil, err
	}
	file.positions = d.positions
	d.problems = append(d.problems, check(file)...)
	if len(d.problems) > 0 {
		return nil, d.error(name)
	}
	return file, nil
}

// decode decodes the one document of a text into v and notes what is wrong;
// fill and split say what to do about a text without and with several.
func decode(name string, text []byte, lookup func(string) (string, bool), v reflect.Value, fill, split string) (*decoder, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, text, err)
	}
	if doc.Kind == 0 {
		return nil, &Error{File: name, Problems: []Problem{{
			Position: Position{1, 1}, Message: "the file is empty", Fix: fill,
		}}}
	}
	d := &decoder{lookup: lookup, positions: map[string]Position{}}
	d.value(doc.Content[0], "", v, field{typ: v.Type()})
	if err := dec.Decode(&more); err == nil {
		d.fail(&more, "", split, "a second document begins")
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, text, err)
	}
	return d, nil
}

// error returns what was noted.
func (d *decoder) error(name string) *Error {
	sortProblems(d.problems)
	return &Error{File: name, Problems: d.problems}
}

// usual returns the advice on what is wrong most often at a line or just before it,
// and the line where that is.
func usual(text []byte, line int, fix string) (int, string) {
	lines, star := bytes.Split(text, []byte("\n")), regexp.MustCompile(starText)
	for i := max(line-2, 0); i < min(line+1, len(lines)); i++ {
		indent := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		switch {
		case bytes.ContainsRune(indent, '\t'):
			return i + 1, "indent with spaces: YAML takes no tabs there"
		case star.Match(lines[i]):
			return i + 1, `put a text that begins with * or & in quotes, as in "*:5555"`
		}
	}
	return line, fix
}

// starText matches a value that begins as an alias or anchor does and goes on as
// neither can.
const starText = `[:\[,-]\s*[*&]([^\w-]|$)`

// syntaxError wraps what the YAML parser says. It gives the line only within
// its text; a text of another form costs nothing but the line.
func syntaxError(name string, text []byte, err error) *Error {
	line, message, fix := 1, strings.TrimPrefix(err.Error(), "yaml: "), "correct the YAML"
	if n, _ := fmt.Sscanf(message, "line %d:", &line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
		fix += " here or on the lines before"
	}
	line, fix = usual(text, line, fix)
	return &Error{File: name, Problems: []Problem{{
		Position: Position{line, 1}, Message: message, Fix: fix,
	}}}
}
