// SPDX-License-Identifier: Apache-2.0

package slab_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
