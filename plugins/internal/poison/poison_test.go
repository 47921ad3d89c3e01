// SPDX-License-Identifier: Apache-2.0

package poison

import (
	"bytes"
	"testing"
)

func TestBytes(t *testing.T) {
	for n := range 70 {
		all := bytes.Repeat([]byte{1}, n+2)
		Bytes(all[1 : n+1])
		want := byte(1)
		if On {
			want = Byte
		}
		if all[0] != 1 || all[n+1] != 1 || bytes.Count(all[1:n+1], []byte{want}) != n {
			t.Errorf("%d bytes: %x", n, all)
		}
	}
}
