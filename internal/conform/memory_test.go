// SPDX-License-Identifier: Apache-2.0

package conform_test

import (
	"context"
	"testing"

	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/programtest"
)

func TestMemory(t *testing.T) {
	b := memtest.Start(t)
	host := programtest.Path(t, "github.com/longshore-go/longshore/internal/conform/longshore-conform-host")
	b.Respond("echo", func(m memory.Message) memory.Message { return m })
	restart := func(context.Context, conform.Place) error {
		b.Restart()
		return nil
	}
	r, err := conform.Run(t.Context(), conform.Subject{Path: b.Path, Settings: b.Settings, Echo: "echo", Restart: restart}, conform.Options{
		Host: func() ([]string, error) { return []string{host}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	honest(t, r)
}
