// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// payload takes a payload out of its envelope (rs1, rs2), where it has one.
func payload(text string) string {
	for _, mark := range []string{"rs1:", "rs2:"} {
		coded, ok := strings.CutPrefix(text, mark)
		b, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil || len(b) < 4 {
			continue
		}
		if n := int(binary.BigEndian.Uint32(b)); 4+n <= len(b) {
			return string(b[4+n:])
		}
	}
	return text
}
