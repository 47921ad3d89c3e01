// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The authentication methods, as brokers name them.
const (
	methodToken = "token"
	methodTLS   = "tls"
)

// maxToken is the most that is read of a token's file, in bytes.
const maxToken = 64 << 10

// method is how a connection says who it is.
func (c *Config) method() string {
	switch {
	case !c.Token.IsZero() || c.TokenFile != "":
		return methodToken
	case c.TLS.Cert != "" && c.Address.TLS:
		return methodTLS
	}
	return ""
}

// renewed reports whether what says who the client is may be another one at the
// next try.
func (c *Config) renewed() bool {
	return c.TokenFile != "" || c.method() == methodTLS
}

// auth is what a connection says of itself now.
func (c *Config) auth() (wire.Auth, error) {
	a := wire.Auth{Method: c.method()}
	if a.Method == methodToken {
		token, err := c.token()
		if err != nil {
			return wire.Auth{}, err
		}
		a.Data = []byte(token)
	}
	return a, nil
}

// token is the token as it is now.
func (c *Config) token() (string, error) {
	if c.TokenFile == "" {
		return c.Token.Reveal(), nil
	}
	b, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", &fileError{"token_file", err, "name a file with a token that this process may read"}
	}
	token := strings.TrimSpace(string(b))
	switch {
	case token == "":
		err = errors.New("it is empty")
	case len(b) > maxToken:
		err = fmt.Errorf("it has %d bytes, over the limit of %d", len(b), maxToken)
	default:
		return token, nil
	}
	return "", &fileError{"token_file", fmt.Errorf("%s: %w", c.TokenFile, err), "write a token into the file"}
}

// tokenEnded says when the token's time was over, "" = it is not, or the token does
// not say (RFC 7519, the claim exp). Brokers refuse an ended token like any other.
func (c *Config) tokenEnded() string {
	token, err := c.token()
	if c.method() != methodToken || err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	var claims struct {
		Ends float64 `json:"exp"`
	}
	if json.Unmarshal(text, &claims) != nil || claims.Ends <= 0 || claims.Ends > float64(time.Now().Unix()) {
		return ""
	}
	return time.Unix(int64(claims.Ends), 0).UTC().Format(time.RFC3339)
}

// A fileError is a file that cannot be used, with the setting that names it.
type fileError struct {
	field string
	err   error
	fix   string
}

func (e *fileError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// fault is the error as a fault of the settings.
func (e *fileError) fault() *core.Fault {
	return &core.Fault{
		Code: core.FaultInvalid, Message: "read the files of Pulsar's security",
		Diagnostics: []core.Diagnostic{{Path: e.field, Message: e.err.Error(), Fix: e.fix}},
	}
}
