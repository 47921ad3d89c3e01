// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/core"
)

// sent is a message as an injector reads it. Values of type []byte are base64.
type sent struct {
	Headers [][2]any `json:"headers"`
	Payload []byte   `json:"payload"`
}

// encoder reads as the lines of messages.
type encoder struct {
	left []core.Message
	line []byte // what is left of the current one
	done bool   // all was read
}

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.line) == 0 {
		if len(e.left) == 0 {
			e.done = true
			return 0, io.EOF
		}
		line, err := encode(e.left[0])
		if err != nil {
			return 0, err
		}
		e.line, e.left = line, e.left[1:]
	}
	n := copy(p, e.line)
	e.line = e.line[n:]
	return n, nil
}

// encode returns the line of a message.
func encode(m core.Message) ([]byte, error) {
	s := sent{Headers: make([][2]any, len(m.Headers)), Payload: m.Payload}
	if s.Payload == nil {
		s.Payload = []byte{} // nil would be null
	}
	for i, h := range m.Headers {
		s.Headers[i] = [2]any{h.Name, base64.StdEncoding.EncodeToString(h.Value)}
	}
	line, err := json.Marshal(s)
	return append(line, '\n'), err
}

// received is a line of a collector.
type received struct {
	Ready   bool       `json:"ready"`
	Name    *string    `json:"name"`
	Headers [][]string `json:"headers"`
	Payload *string    `json:"payload"`
}

// decoder hands over what a collector says.
type decoder struct {
	name  string // of messages without one
	ready func()
	got   func(core.Message)

	begun bool
}

// line reads one line.
func (d *decoder) line(text []byte) error {
	var r received
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return fmt.Errorf("%w; write {\"ready\":true}, or a message", err)
	}
	if dec.More() {
		return errors.New("something follows the object; write one object a line")
	}
	switch {
	case r.Ready && (r.Name != nil || r.Headers != nil || r.Payload != nil):
		return errors.New("a message says ready; write {\"ready\":true} on a line of its own")
	case r.Ready:
		if !d.begun {
			d.ready()
		}
		d.begun = true
		return nil
	case !d.begun:
		return errors.New("it says a message before it is ready; write {\"ready\":true} first")
	case r.Payload == nil:
		return errors.New("payload is missing; write it in base64, \"\" for none")
	}
	m, err := r.message()
	if err != nil {
		return err
	}
	if r.Name == nil {
		m.Name = d.name
	}
	d.got(m)
	return nil
}

// message decodes what is in base64.
func (r *received) message() (m core.Message, err error) {
	if r.Name != nil {
		m.Name = *r.Name
	}
	if m.Payload, err = base64.StdEncoding.DecodeString(*r.Payload); err != nil {
		return m, fmt.Errorf("payload: %w; write it in base64", err)
	}
	for i, h := range r.Headers {
		if len(h) != 2 {
			return m, fmt.Errorf("headers[%d] has %d texts; write [name, value in base64]", i, len(h))
		}
		value, err := base64.StdEncoding.DecodeString(h[1])
		if err != nil {
			return m, fmt.Errorf("headers[%d]: %w; write its value in base64", i, err)
		}
		m.Headers = append(m.Headers, core.Header{Name: h[0], Value: value})
	}
	return m, nil
}
