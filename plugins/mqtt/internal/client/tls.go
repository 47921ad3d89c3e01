// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/longshore-go/longshore/core"
)

// TLSFiles name what TLS uses beyond the system's roots.
type TLSFiles struct {
	CA         string // PEM file with the authorities that are trusted, "" = the system's
	Cert, Key  string // PEM files of the client's certificate, both or none
	ServerName string // that the server's certificate must have, "" = the address's host
}

// Load reads the files. Errors are *core.Fault with a diagnostic that names the
// setting: tls_ca, tls_cert, tls_key.
func (f TLSFiles) Load() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, tlsFault("tls_ca", err, "name a PEM file that this process may read")
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, tlsFault("tls_ca", fmt.Errorf("%s has no certificate in PEM form", f.CA), "name a file with BEGIN CERTIFICATE in it")
		}
	}
	if f.Cert == "" && f.Key == "" {
		return c, nil
	}
	pair, err := f.pair()
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// pair reads the client's certificate.
func (f TLSFiles) pair() (tls.Certificate, error) {
	switch {
	case f.Cert == "":
		return tls.Certificate{}, tlsFault("tls_cert", fmt.Errorf("a key without a certificate"), "set tls_cert too, or neither")
	case f.Key == "":
		return tls.Certificate{}, tlsFault("tls_key", fmt.Errorf("a certificate without a key"), "set tls_key too, or neither")
	}
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return tls.Certificate{}, tlsFault("tls_cert", err, "name a PEM file that this process may read")
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return tls.Certificate{}, tlsFault("tls_key", err, "name a PEM file that this process may read")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, tlsFault("tls_cert", fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err), "name a certificate and its key, both as PEM")
	}
	return pair, nil
}

func tlsFault(field string, err error, fix string) *core.Fault {
	return &core.Fault{
		Code: core.FaultInvalid, Message: "read the files of TLS",
		Diagnostics: []core.Diagnostic{{Path: field, Message: err.Error(), Fix: fix}},
	}
}
