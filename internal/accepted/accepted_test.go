// SPDX-License-Identifier: Apache-2.0

package accepted

import (
	"fmt"
	"testing"
)

func TestTexts(t *testing.T) {
	var texts Texts
	if texts.Has(nil) {
		t.Error("the zero value has a text")
	}
	text := []byte(`{"qos":0}`)
	texts.Add(text)
	text[1] = 'x' // it is the caller's
	if texts.Has(text) || !texts.Has([]byte(`{"qos":0}`)) {
		t.Error("a text is remembered as the caller's memory, not as it was")
	}
	long := make([]byte, maxSize+1)
	texts.Add(long)
	texts.Add(long[1:])
	if texts.Has(long) || !texts.Has(long[1:]) {
		t.Errorf("texts of %d B are remembered, or those of %d B are not", maxSize+1, maxSize)
	}
	for i := range 10 * maxTexts {
		text := fmt.Appendf(nil, "%d", i)
		if texts.Add(text); !texts.Has(text) {
			t.Fatalf("%s is not remembered", text)
		}
		if len(texts.good) > maxTexts {
			t.Fatalf("%d texts are remembered", len(texts.good))
		}
	}
	if n := testing.AllocsPerRun(100, func() { texts.Has(text) }); n > 0 {
		t.Errorf("%v allocations to ask", n)
	}
}
