// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
)

// abandonLimit is how long the broker is given to take leave of a connection that
// is not needed.
const abandonLimit = 2 * time.Second

// Connect connects to the cluster. What may pass is tried again until
// connect_timeout or ctx ends.
func (e *endpoint) Connect(ctx context.Context, _ []byte) (pluginapi.Conn, error) {
	doing := "connect endpoint " + e.name
	c, err := client.New(e.client())
	if err != nil {
		return nil, fault.Of(doing, err)
	}
	if err := c.Connect(ctx); err != nil {
		abandon(c)
		return nil, fault.Of(doing, err)
	}
	e.introduce()
	conn := newConn(e, c)
	conn.publisher.keep(ctx, e)
	return conn, nil
}

// introduce says once what the settings mean that people may not expect.
func (e *endpoint) introduce() {
	if !e.address.TLS && (!e.settings.Token.IsZero() || e.settings.TokenFile != "") {
		e.log.Warn("the token travels as it is: whoever listens on the way can use it", "url", e.address.String(),
			"fix", "use pulsar+ssl:// in url")
	}
}

// client is what the endpoint's connection is like.
func (e *endpoint) client() client.Config {
	s := &e.settings
	return client.Config{
		Address: e.address, Token: s.Token, TokenFile: s.TokenFile,
		TLS:              client.TLSFiles{CA: s.TLSCA, Cert: s.TLSCert, Key: s.TLSKey, AnyHost: !*s.TLSVerifyHostname},
		ConnectTimeout:   time.Duration(s.ConnectTimeout),
		OperationTimeout: time.Duration(s.OperationTimeout),
		ListenerName:     s.ListenerName,
		Connections:      s.Connections,
		Log:              e.log,
	}
}

// abandon closes a client that nobody uses.
func abandon(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
	defer cancel()
	_ = c.Close(ctx) // why it is abandoned says more
}
