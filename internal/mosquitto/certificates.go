// SPDX-License-Identifier: Apache-2.0

package mosquitto

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificates are the files of an authority, and of what it has signed.
type certificates struct {
	ca, server, serverKey, client, clientKey string
}

// newCertificates makes an authority and its certificates in a folder.
func newCertificates(tb testing.TB, folder string) *certificates {
	tb.Helper()
	path := func(name string) string { return filepath.Join(folder, name+".pem") }
	c := &certificates{
		ca: path("ca"), server: path("server"), serverKey: path("server-key"), client: path("client"), clientKey: path("client-key"),
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(tb)
	sign(tb, authority, authority, key, key, c.ca, path("ca-key"))
	sign(tb, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, newKey(tb), key, c.server, c.serverKey)
	sign(tb, &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "a client"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, newKey(tb), key, c.client, c.clientKey)
	return c
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// sign signs a certificate of a key and writes both.
func sign(tb testing.TB, of, by *x509.Certificate, key, signer *ecdsa.PrivateKey, certPath, keyPath string) {
	tb.Helper()
	cert, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, signer)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certPath: {Type: "CERTIFICATE", Bytes: cert}, keyPath: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// lines are those of the listener.
func (c *certificates) lines(askClients bool) []string {
	lines := []string{"certfile " + c.server, "keyfile " + c.serverKey, "cafile " + c.ca}
	if askClients {
		lines = append(lines, "require_certificate true")
	}
	return lines
}
