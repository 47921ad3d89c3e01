// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func authorityOf(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.file = filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue returns files with a certificate and its key, and both as package tls has
// them.
func (a *authority) issue(until time.Time, names ...string) (cert, key string, pair tls.Certificate) {
	a.t.Helper()
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, _ := x509.MarshalPKCS8PrivateKey(k)
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(a.t, cert, "CERTIFICATE", der)
	writePEM(a.t, key, "PRIVATE KEY", kder)
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		a.t.Fatal(err)
	}
	return cert, key, pair
}

// secure accepts TLS connections and admits who does MQTT over them.
func secure(t *testing.T, config *tls.Config) Address {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			nc = tls.Server(nc, config)
			_ = nc.SetDeadline(time.Now().Add(patience))
			r := packet.NewReader(nc, 0)
			var p packet.Packet
			for {
				if there, err := r.Next(&p); err != nil || there && p.Type == packet.TypeDisconnect {
					break
				} else if there && p.Type == packet.TypeConnect {
					nc.Write([]byte(connack + publish))
				} else if !there && r.Fill() != nil {
					break
				}
			}
			r.Close()
			nc.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	a := addressOf(ln.Addr())
	a.TLS = true
	return a
}

func TestTLS(t *testing.T) {
	ca, other := authorityOf(t), authorityOf(t)
	later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	_, _, good := ca.issue(later, "127.0.0.1", "localhost")
	_, _, expired := ca.issue(past, "127.0.0.1")
	_, _, named := ca.issue(later, "broker.example")
	cert, key, _ := ca.issue(later, "client")
	strangeCert, strangeKey, _ := other.issue(later, "client")
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	asks := &tls.Config{Certificates: []tls.Certificate{good}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	asksOld := asks.Clone()
	asksOld.MaxVersion = tls.VersionTLS12
	of := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	old := of(good)
	old.MaxVersion = tls.VersionTLS11
	for name, c := range map[string]struct {
		server *tls.Config
		files  TLSFiles
		code   core.FaultCode // 0 = it connects
		words  []string
	}{
		"own authority":                       {server: of(good), files: TLSFiles{CA: ca.file}},
		"client certificate":                  {server: asks, files: TLSFiles{CA: ca.file, Cert: cert, Key: key}},
		"client certificate, TLS 1.2":         {server: asksOld, files: TLSFiles{CA: ca.file, Cert: cert, Key: key}},
		"a name given":                        {server: of(named), files: TLSFiles{CA: ca.file, ServerName: "broker.example"}},
		"unknown authority":                   {of(good), TLSFiles{CA: other.file}, core.FaultDenied, []string{"tls_ca", "unknown authority"}},
		"the system does not know it":         {of(good), TLSFiles{}, core.FaultDenied, []string{"tls_ca"}},
		"another name":                        {of(named), TLSFiles{CA: ca.file}, core.FaultDenied, []string{"tls_server_name", "127.0.0.1"}},
		"expired":                             {of(expired), TLSFiles{CA: ca.file}, core.FaultDenied, []string{"expired", "clock"}},
		"no client certificate":               {asks, TLSFiles{CA: ca.file}, core.FaultDenied, []string{"tls_cert", "certificate required"}},
		"no client certificate, TLS 1.2":      {asksOld, TLSFiles{CA: ca.file}, core.FaultDenied, []string{"tls_cert"}},
		"another's client certificate":        {asks, TLSFiles{CA: ca.file, Cert: strangeCert, Key: strangeKey}, core.FaultDenied, []string{"tls_cert"}},
		"another's, TLS 1.2":                  {asksOld, TLSFiles{CA: ca.file, Cert: strangeCert, Key: strangeKey}, core.FaultDenied, []string{"tls_cert"}},
		"a version of TLS that is not secure": {old, TLSFiles{CA: ca.file}, core.FaultDenied, []string{"protocol version"}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := c.files.Load()
			if err != nil {
				t.Fatal(err)
			}
			s := subjectOf(t, Config{Address: secure(t, c.server), TLS: config})
			err = within(t, "the start", s.start(t))
			if c.code != 0 {
				faultWith(t, err, c.code, append(c.words, "mqtts://127.0.0.1")...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			l := within(t, "the link", s.ups)
			within(t, "a packet", s.packets)
			mark, _ := l.Write(func(b []byte) []byte { return append(b, strings.Repeat("\xc0\x00", 1<<20)...) })
			eventually(t, "it is written", func() bool { return l.Written() == mark })
			s.mustClose(t)
		})
	}
}

// A port where no TLS is spoken.
func TestTLSOfAPlainServer(t *testing.T) {
	srv := serve(t)
	a := srv.address()
	a.TLS = true
	s := subjectOf(t, Config{Address: a})
	started := s.start(t)
	p := srv.accept()
	p.raw("\x20\x02\x00\x01 and more")
	faultWith(t, within(t, "the start", started), core.FaultUnsupported, "mqtt://")
}

// A server that goes away within the handshake of TLS may be there again.
func TestTLSCut(t *testing.T) {
	srv := serve(t)
	a := srv.address()
	a.TLS = true
	s := subjectOf(t, Config{Address: a})
	s.start(t)
	for range 3 {
		srv.accept().nc.Close()
	}
	s.mustClose(t)
}

func TestTLSFilesRefuse(t *testing.T) {
	ca := authorityOf(t)
	cert, key, _ := ca.issue(time.Now().Add(time.Hour), "client")
	_, otherKey, _ := ca.issue(time.Now().Add(time.Hour), "client")
	rubbish := filepath.Join(t.TempDir(), "rubbish")
	os.WriteFile(rubbish, []byte("no certificate"), 0o600)
	for name, c := range map[string]struct {
		files TLSFiles
		path  string
	}{
		"no such authority":  {TLSFiles{CA: "/nowhere/ca.pem"}, "tls_ca"},
		"rubbish":            {TLSFiles{CA: rubbish}, "tls_ca"},
		"no key":             {TLSFiles{Cert: cert}, "tls_key"},
		"no certificate":     {TLSFiles{Key: key}, "tls_cert"},
		"no such cert":       {TLSFiles{Cert: "/nowhere", Key: key}, "tls_cert"},
		"no such key":        {TLSFiles{Cert: cert, Key: "/nowhere"}, "tls_key"},
		"another's key":      {TLSFiles{Cert: cert, Key: otherKey}, "tls_cert"},
		"rubbish for a cert": {TLSFiles{Cert: rubbish, Key: key}, "tls_cert"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.files.Load()
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != c.path || f.Diagnostics[0].Fix == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// rootsVariable has this test's process be a client that trusts the system's roots, of a
// server at its value.
const rootsVariable = "LONGSHORE_TEST_SYSTEM_ROOTS"

// connectWithSystemRoots connects without a word about authorities.
func connectWithSystemRoots() int {
	a, _, err := ParseAddress(os.Getenv(rootsVariable))
	if err == nil {
		c := New(Config{Address: a, Handler: newRecorder(), Connect: packet.ConnectParams{ClientID: "roots"}})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err = c.Start(ctx); err == nil {
			err = c.Close(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The system's roots are trusted where no file is named. They are read once a
// process, so that another has to say so.
func TestSystemRoots(t *testing.T) {
	ca := authorityOf(t)
	_, _, good := ca.issue(time.Now().Add(time.Hour), "127.0.0.1")
	a := secure(t, &tls.Config{Certificates: []tls.Certificate{good}})
	for file, want := range map[string]bool{ca.file: true, authorityOf(t).file: false} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), rootsVariable+"="+a.String(), "SSL_CERT_FILE="+file, "SSL_CERT_DIR=/nowhere")
		out, err := cmd.CombinedOutput()
		if (err == nil) != want {
			t.Errorf("trusted %v: %v: %s", want, err, out)
		}
	}
}
