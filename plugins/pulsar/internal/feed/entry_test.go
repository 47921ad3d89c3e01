// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"

	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// keys are a pair for encryption by the library, made for one test.
type keys struct{ public, private []byte }

func newKeys(t *testing.T) keys {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return keys{
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
}

func (k keys) PublicKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, k.public, nil), nil
}

func (k keys) PrivateKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, k.private, nil), nil
}

// Messages that cannot be read stay in the backlog with one warning, and those around
// them come, however short the receiver queue is.
func TestUnreadableMessagesStay(t *testing.T) {
	t.Parallel()
	encryption := &pulsar.ProducerEncryptionInfo{KeyReader: newKeys(t), Keys: []string{"k"}}
	for _, tt := range []struct {
		name    string
		foreign pulsar.ProducerOptions
		payload int
		entries int64 // of each message
		want    string
	}{
		{"encrypted", pulsar.ProducerOptions{Encryption: encryption, DisableBatching: true}, 10, 1, "encrypted"},
		{"chunked", pulsar.ProducerOptions{EnableChunking: true, ChunkMaxMessageSize: 1000, DisableBatching: true}, 2500, 0, "chunked"},
	} {
		for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive} {
			t.Run(tt.name+"/"+typeName(typ), func(t *testing.T) {
				t.Parallel()
				b := broker.Broker(t)
				n := parsed(t, name(t))
				cfg := config(connected(t, b), "s", n)
				cfg.Type, cfg.ReceiverQueue = typ, 2
				f := opened(t, cfg)
				peer := raw(t, b)
				good := producer(t, peer, n.String())
				foreign := tt.foreign
				foreign.Topic, foreign.SendTimeout = n.String(), -1
				bad, err := peer.CreateProducer(foreign)
				if err != nil {
					t.Fatal(err)
				}
				defer bad.Close()
				const rounds = 8
				for i := range rounds {
					publish(t, good, fmt.Sprintf("m-%d-", i), 1)
					if _, err := bad.Send(t.Context(), &pulsar.ProducerMessage{Payload: bytes.Repeat([]byte("x"), tt.payload)}); err != nil {
						t.Fatal(err)
					}
				}
				publish(t, good, "last-", 1)
				eventually(t, "the messages that can be read", func() bool { return f.got("m-") == rounds && f.got("last-") == 1 })
				left := rounds * tt.entries
				if tt.entries == 0 {
					left = b.Stats(n.String()).MsgInCounter - rounds - 1
				}
				if left < rounds {
					t.Fatalf("%d entries of %d messages cannot be read", left, rounds)
				}
				b.AwaitBacklog(n.String(), "s", left)
				if got := f.got(""); got != rounds+1 {
					t.Errorf("%d messages came, want %d", got, rounds+1)
				}
				log := f.log.String()
				if warned := strings.Count(log, "stays in the backlog"); warned != 1 || !strings.Contains(log, n.String()) || !strings.Contains(log, tt.want) || !strings.Contains(log, "position=") {
					t.Errorf("%d warnings, want 1 with topic, position and %q:\n%s", warned, tt.want, log)
				}
			})
		}
	}
}

// A message that is broken when it comes is asked for again where that can be; where it
// stays so it stays in the backlog.
func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ    wire.SubscriptionType
		broken int32 // how often the marked message is broken on its way
		comes  bool
	}{{wire.Shared, 1, true}, {wire.Shared, 1000, false}, {wire.KeyShared, 1, true}, {wire.Exclusive, 1, false}} {
		t.Run(fmt.Sprintf("%s-%d", typeName(tt.typ), tt.broken), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			var left, came atomic.Int32
			left.Store(tt.broken)
			p := proxy.StartChanging(t, b.Address(), func(kind int, frame []byte) {
				if at := bytes.Index(frame, []byte("fragile-0")); kind == proxy.Message && at >= 0 {
					came.Add(1)
					if left.Add(-1) >= 0 {
						frame[len(frame)-1] ^= 1
					}
				}
			})
			n := parsed(t, name(t))
			cfg := config(connectedTo(t, p.URL(), b.Token("admin")), "s", n)
			cfg.Type, cfg.ReceiverQueue = tt.typ, 1
			f := opened(t, cfg)
			good := producer(t, raw(t, b), n.String())
			publish(t, good, "m", 3)
			publish(t, good, "fragile-", 1)
			publish(t, good, "last-", 3)
			eventually(t, "the others", func() bool { return f.got("m") == 3 && f.got("last-") == 3 })
			if tt.comes {
				eventually(t, "the broken one", func() bool { return f.got("fragile-") == 1 })
				b.AwaitBacklog(n.String(), "s", 0)
				if strings.Contains(f.log.String(), "stays in the backlog") {
					t.Errorf("a warning about what has come:\n%s", f.log)
				}
				return
			}
			b.AwaitBacklog(n.String(), "s", 1)
			eventually(t, "a warning", func() bool { return strings.Contains(f.log.String(), "checksum") })
			if n := came.Load(); f.got("fragile-") > 0 || n > 2 {
				t.Errorf("it came to the client %d times, and %d times through", n, f.got("fragile-"))
			}
		})
	}
}

// The warnings about a partition are one a minute; none of what they are about is left
// out of their numbers.
func TestUnreadAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		to := slog.New(slog.NewTextHandler(&log, nil))
		var u unread
		u.flush(to)
		for i := range 5 {
			u.add(to, fmt.Sprintf("1:%d:-1", i), errors.New("broken"))
		}
		time.Sleep(unreadEvery)
		u.flush(to)
		u.flush(to)
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(got) != 2 || !strings.Contains(got[0], "position=1:0:-1 messages=1 ") || !strings.Contains(got[1], "position=1:4:-1 messages=4 ") {
			t.Errorf("got %q", got)
		}
	})
}

// The broker takes a permit for each message of an entry that is not acked.
func TestPermitsOf(t *testing.T) {
	bad := func(k wire.EntryKind) error { return &wire.EntryError{Kind: k} }
	for _, tt := range []struct {
		d    wire.Delivery
		err  error
		want int
	}{
		{wire.Delivery{}, nil, 1},
		{wire.Delivery{Count: 7}, nil, 7},
		{wire.Delivery{Count: 700}, nil, 700},
		{wire.Delivery{Count: 700}, bad(wire.EntryEncrypted), 700},
		{wire.Delivery{Count: 70, Left: []uint64{0b101, 0b1}}, nil, 3},
		{wire.Delivery{Count: 7, Left: []uint64{0}}, nil, 0},
		{wire.Delivery{Count: 7}, bad(wire.EntryChecksum), 7},
		{wire.Delivery{Count: 700}, bad(wire.EntryChecksum), 100}, // what it says may be what is broken
	} {
		if got := permitsOf(&tt.d, tt.err, 100); got != tt.want {
			t.Errorf("%+v: got %d, want %d", &tt.d, got, tt.want)
		}
	}
}
