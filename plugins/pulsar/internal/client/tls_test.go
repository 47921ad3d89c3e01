// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func authorityOf(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	write(t, a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue writes a certificate of this name and its key to files, and returns both as
// package tls has them.
func (a *authority) issue(cert, key, name string, until time.Time) tls.Certificate {
	a.t.Helper()
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, _ := x509.MarshalPKCS8PrivateKey(k)
	write(a.t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(a.t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kder}))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// secured is a listener with TLS that notes who has come to a CONNECT, and admits nobody:
// what comes then decides nothing here.
type secured struct {
	address Address
	names   chan string // of the clients' certificates, "" = none
}

func secure(t *testing.T, config *tls.Config) *secured {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &secured{address: Address{TLS: true, Hosts: []string{ln.Addr().String()}}, names: make(chan string, 1000)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer raw.Close()
				_ = raw.SetDeadline(time.Now().Add(patience))
				nc := tls.Server(raw, config)
				if _, err := wire.NewReader(nc).Next(); err != nil {
					return
				}
				name := ""
				if certs := nc.ConnectionState().PeerCertificates; len(certs) > 0 {
					name = certs[0].Subject.CommonName
				}
				s.names <- name
				_, _ = nc.Write(refusal(-1, wire.AuthenticationError, "seen"))
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		running.Wait()
	})
	return s
}

// The link and connections to brokers go only to a broker whose certificate is
// one of the authority, and for the host that was dialed unless that is left unchecked.
func TestBrokersCertificate(t *testing.T) {
	dir := t.TempDir()
	good, other := authorityOf(t, "good"), authorityOf(t, "other")
	pair := func(a *authority, name string, until time.Time) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{
			a.issue(filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), name, until),
		}}
	}
	later := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		broker *tls.Config
		files  TLSFiles
		path   string // of the fault's advice; "" = the connection comes about
	}{
		"good":                           {pair(good, "127.0.0.1", later), TLSFiles{CA: good.file}, ""},
		"another host":                   {pair(good, "broker.example", later), TLSFiles{CA: good.file}, "url"},
		"another host, unchecked":        {pair(good, "broker.example", later), TLSFiles{CA: good.file, AnyHost: true}, ""},
		"another authority":              {pair(other, "127.0.0.1", later), TLSFiles{CA: good.file}, "tls_ca"},
		"another authority, any host":    {pair(other, "127.0.0.1", later), TLSFiles{CA: good.file, AnyHost: true}, "tls_ca"},
		"the system's":                   {pair(good, "127.0.0.1", later), TLSFiles{}, "tls_ca"},
		"the system's, any host":         {pair(good, "127.0.0.1", later), TLSFiles{AnyHost: true}, "tls_ca"},
		"expired":                        {pair(good, "127.0.0.1", time.Now().Add(-time.Minute)), TLSFiles{CA: good.file}, "url"},
		"expired, any host":              {pair(good, "x.example", time.Now().Add(-time.Minute)), TLSFiles{CA: good.file, AnyHost: true}, "url"},
		"older than TLS 1.2 is not done": {&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, Certificates: pair(good, "127.0.0.1", later).Certificates}, TLSFiles{CA: good.file}, "tls_cert"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := secure(t, tt.broker)
			s := subjectOf(t, Config{Address: srv.address, TLS: tt.files, OperationTimeout: patience})
			f := s.refusedWith(t)
			if tt.path == "" {
				within(t, "the CONNECT", srv.names)
				tt.path = "token" // the server admits nobody
			} else if f.Diagnostics[0].Path != tt.path || f.Code != core.FaultDenied || f.Transient {
				t.Errorf("got %v; want a denied one at %s", f, tt.path)
			}
			_, err := s.connect(target{broker: srv.address.Hosts[0]}, srv.address.Hosts[0])
			if _, ok := errors.AsType[*ServerError](err); ok != (tt.path == "token") {
				t.Errorf("a connection to a broker: %v", err)
			}
			if tt.path != "token" && len(srv.names) > 0 {
				t.Error("such a broker is talked to")
			}
		})
	}
}

// The files are read at every connection.
func TestFilesAreReadAgain(t *testing.T) {
	for name, anyHost := range map[string]bool{"host checked": false, "any host": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := authorityOf(t, "a")
			cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
			pair := a.issue(filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), "127.0.0.1", time.Now().Add(time.Hour))
			a.issue(cert, key, "one", time.Now().Add(time.Hour))
			b, _ := os.ReadFile(a.file)
			write(t, ca, b)
			srv := secure(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
			s := subjectOf(t, Config{
				Address: srv.address, OperationTimeout: patience,
				TLS: TLSFiles{CA: ca, Cert: cert, Key: key, AnyHost: anyHost},
			})
			try := func(want string) {
				t.Helper()
				for _, to := range []target{{}, {broker: srv.address.Hosts[0]}} {
					_, err := s.connect(to, srv.address.Hosts[0])
					if e, ok := errors.AsType[*ServerError](err); !ok || e.Message != "seen" {
						t.Errorf("the connection: %v", err)
					}
					if got := within(t, "the CONNECT", srv.names); got != want {
						t.Errorf("we are %q; want %q", got, want)
					}
				}
			}
			try("one")
			a.issue(cert, key, "two", time.Now().Add(time.Hour))
			try("two")
			write(t, ca, []byte("nothing"))
			if _, err := s.connect(target{}, srv.address.Hosts[0]); err == nil || !strings.Contains(err.Error(), "tls_ca") {
				t.Errorf("with another authority's file: %v; want tls_ca named", err)
			}
		})
	}
}

// Files that cannot be used are refused before anything is dialed, each by the setting
// that names it.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	a := authorityOf(t, "a")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.issue(cert, key, "x", time.Now().Add(time.Hour))
	empty, large := filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	write(t, empty, []byte(" \n"))
	write(t, large, []byte(strings.Repeat("x", maxToken+1)))
	tlsAddress := Address{TLS: true, Hosts: []string{"127.0.0.1:1"}}
	for name, tt := range map[string]struct {
		c    Config
		path string
	}{
		"no CA":          {Config{TLS: TLSFiles{CA: dir + "/none"}}, "tls_ca"},
		"CA without PEM": {Config{TLS: TLSFiles{CA: empty}}, "tls_ca"},
		"no key":         {Config{TLS: TLSFiles{Cert: cert}}, "tls_key"},
		"no certificate": {Config{TLS: TLSFiles{Key: key}}, "tls_cert"},
		"another's key":  {Config{TLS: TLSFiles{Cert: cert, Key: a.file}}, "tls_cert"},
		"missing key":    {Config{TLS: TLSFiles{Cert: cert, Key: dir + "/none"}}, "tls_key"},
		"missing cert":   {Config{TLS: TLSFiles{Cert: dir + "/none", Key: key}}, "tls_cert"},
		"no token file":  {Config{TokenFile: dir + "/none"}, "token_file"},
		"empty token":    {Config{TokenFile: empty}, "token_file"},
		"large token":    {Config{TokenFile: large}, "token_file"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.c.Address = tlsAddress
			_, err := New(tt.c)
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || f.Transient || f.Diagnostics[0].Path != tt.path || f.Diagnostics[0].Fix == "" {
				t.Errorf("got %v; want an invalid %s with a fix", err, tt.path)
			}
		})
	}
}
