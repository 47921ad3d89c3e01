// SPDX-License-Identifier: Apache-2.0

package outq

import "testing"

func TestClasses(t *testing.T) {
	last := 0
	for size := 1; size <= 1<<mostBits; size += 1 + size/1000 {
		class, holds := classOf(size)
		again, same := classOf(holds)
		if class < last || class >= classes || holds < size || again != class || same != holds {
			t.Fatalf("%d bytes: class %d of %d bytes, behind %d; that size has class %d of %d", size, class, holds, last, again, same)
		}
		if size > 1<<leastBits && holds > size+size/8 {
			t.Errorf("%d bytes take %d", size, holds)
		}
		last = class
	}
	if class, holds := classOf(1<<mostBits + 1); class >= 0 || holds != 1<<mostBits+1 {
		t.Errorf("over the most: class %d of %d bytes", class, holds)
	}
	if class, _ := classOf(1 << mostBits); class != classes-1 {
		t.Errorf("the most is class %d of %d", class, classes)
	}
}
