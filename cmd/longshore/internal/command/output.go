// SPDX-License-Identifier: Apache-2.0

package command

import "bytes"

// output keeps the first max bytes written to it, remembers the last line, and
// takes all the rest, so that a command never waits for its reader.
type output struct {
	max  int
	kept []byte
	cut  int    // bytes not kept
	tail []byte // the end of what was not kept
}

// maxLine is how much of a last line is kept: what fits a log line and a
// header.
const maxLine = 256

// Write keeps what there is room for. It never fails.
func (o *output) Write(p []byte) (int, error) {
	keep := min(len(p), o.max-len(o.kept))
	o.kept = append(o.kept, p[:keep]...)
	if rest := p[keep:]; len(rest) > 0 {
		o.cut += len(rest)
		o.tail = append(o.tail, rest[max(0, len(rest)-2*maxLine):]...)
		o.tail = o.tail[max(0, len(o.tail)-2*maxLine):]
	}
	return len(p), nil
}

// lastLine returns the last line that holds anything, cut to maxLine bytes.
func (o *output) lastLine() string {
	end := o.kept
	if o.cut > 0 {
		end = o.tail
	}
	end = bytes.TrimSpace(end)
	if i := bytes.LastIndexByte(end, '\n'); i >= 0 {
		end = end[i+1:]
	}
	return string(bytes.ToValidUTF8(end[max(0, len(end)-maxLine):], nil))
}
