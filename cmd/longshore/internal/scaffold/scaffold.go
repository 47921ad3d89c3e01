// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the module of a new transport: a queue in memory that
// builds and passes the conformance suite as it stands.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"github.com/longshore-go/longshore/internal/handshake"
)

// Longshore is the path of the module that a transport needs.
const Longshore = "github.com/longshore-go/longshore"

// Module says what is written.
type Module struct {
	Name    string // of the transport
	Dir     string // the module's folder; "" = Program in the working directory
	Path    string // of the module; "" = example.com/ and Program
	Version string // of longshore; "" = go mod tidy finds the newest one
	Replace string // the folder of a longshore checkout to build with; "" = none
}

// Program is the name of the plugin's file.
func (m Module) Program() string { return handshake.FilePrefix + m.Name }

// WithDefaults returns m with nothing left out.
func (m Module) WithDefaults() Module {
	if m.Dir == "" {
		m.Dir = m.Program()
	}
	if m.Path == "" {
		m.Path = "example.com/" + m.Program()
	}
	return m
}

// File is one file of the module.
type File struct {
	Name string // within the module's folder, with slashes
	Text []byte
}

//go:embed all:template
var templates embed.FS

const (
	folder = "template"
	ending = ".tmpl" // keeps Go files from being compiled here
)

// Files returns the files of the module by name. Its error is an
// *ArgumentError.
func (m Module) Files() ([]File, error) {
	m = m.WithDefaults()
	replace, err := m.check()
	if err != nil {
		return nil, err
	}
	m.Replace = replace
	if m.Replace != "" && m.Version == "" {
		m.Version = "v0.0.0" // the folder counts
	}
	var files []File
	err = fs.WalkDir(templates, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := m.render(name)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		files = append(files, File{Name: strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ending), Text: text})
		return nil
	})
	return files, err
}

// render fills one template in. Its marks are square brackets: curly ones belong
// to the files themselves.
func (m Module) render(name string) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path.Base(name)).Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, m)
	return out.Bytes(), err
}
