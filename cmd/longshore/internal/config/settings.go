// SPDX-License-Identifier: Apache-2.0

package config

import "reflect"

// Settings are those of one transport, from a file of their own. What they mean
// the transport says.
type Settings struct {
	Values map[string]any // the values of JSON; not nil

	name      string
	positions map[string]Position
}

// LoadSettings reads settings in YAML or JSON. As within a service file,
// references such as ${env:NAME} are replaced in texts. Its error is an *Error
// where the file could be read.
func LoadSettings(path string, lookup func(string) (string, bool)) (*Settings, error) {
	text, err := read(path, "settings file")
	if err != nil {
		return nil, err
	}
	return ParseSettings(path, text, lookup)
}

// ParseSettings checks the text of a file. name stands in its errors.
func ParseSettings(name string, text []byte, lookup func(string) (string, bool)) (*Settings, error) {
	s := &Settings{name: name}
	d, err := decode(name, text, lookup, reflect.ValueOf(&s.Values).Elem(), "write fields, or {} for none", "put them into one")
	if err != nil {
		return nil, err
	}
	if len(d.problems) > 0 {
		return nil, d.error(name)
	}
	if s.Values == nil { // null
		s.Values = map[string]any{}
	}
	s.positions = d.positions
	return s, nil
}

// Problem returns what a transport says of a field as a line of the file. The
// position is that of the nearest thing around the field that the file holds.
func (s *Settings) Problem(path, message, fix string) string {
	return Problem{Position: (&File{positions: s.positions}).At(path), Path: path, Message: message, Fix: fix}.In(s.name)
}
