// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// shared is a broker that wants tokens, lets roles do what they are granted, and has
// a port with TLS. It asks for credentials again once a second where they have ended.
var shared = pulsarbroker.Shared{Config: pulsarbroker.Config{
	Tokens: true, Authorize: true, TLS: true, Lines: []string{"authenticationRefreshCheckSeconds=1"},
}}

func TestMain(m *testing.M) { shared.Main(m) }
