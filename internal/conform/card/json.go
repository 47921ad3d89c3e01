// SPDX-License-Identifier: Apache-2.0

package card

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/internal/conform"
)

// maxCard is the most that a card in JSON may hold: far above any suite.
const maxCard = 16 << 20

// JSON returns the card, indented, ended by a newline. The same card is always
// the same bytes.
func (c *Card) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("write card: %w", err)
	}
	return b.Bytes(), nil
}

// Read reads a card in JSON and checks that it is whole: that its statuses are
// known, its cases are there once each, and its counts are those of its cases.
func Read(r io.Reader) (*Card, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCard+1))
	if err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	if len(text) > maxCard {
		return nil, fmt.Errorf("read card: it is larger than %d bytes; is it a card?", maxCard)
	}
	c := &Card{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read card: %w; is it a card in JSON?", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	return c, nil
}

// check says what a card that was read lacks.
func (c *Card) check() error {
	switch {
	case c.Format == 0:
		return errors.New("format is missing; is it a card in JSON?")
	case c.Format != Format:
		return fmt.Errorf("format is %d, known is %d; use the longshore that wrote it", c.Format, Format)
	case c.Plugin.Name == "":
		return errors.New("plugin.name is missing")
	}
	seen := make(map[string]bool, len(c.Cases))
	var got Run
	for i := range c.Cases {
		one := &c.Cases[i]
		if one.ID == "" || seen[one.ID] {
			return fmt.Errorf("cases[%d].id: %q is there twice, or empty", i, one.ID)
		}
		seen[one.ID] = true
		switch one.Status {
		case conform.Passed:
			got.Passed++
		case conform.Failed:
			got.Failed++
		case conform.NotApplicable:
			got.NotApplicable++
		case conform.NotRun:
			got.NotRun++
		default:
			return fmt.Errorf("cases[%d].status: %q is none", i, one.Status)
		}
	}
	r := c.Run
	if got.Passed != r.Passed || got.Failed != r.Failed || got.NotApplicable != r.NotApplicable || got.NotRun != r.NotRun {
		return fmt.Errorf("run counts %s, its cases %s", r, got)
	}
	return nil
}

// String returns the counts in one line.
func (r Run) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d not applicable, %d not run", r.Passed, r.Failed, r.NotApplicable, r.NotRun)
}
