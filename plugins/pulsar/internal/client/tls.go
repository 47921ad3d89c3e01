// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// load reads the files for a connection.
func (f TLSFiles) load() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = f.roots(); err != nil {
		return nil, err
	}
	if f.Cert != "" || f.Key != "" {
		pair, err := f.pair()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*pair}
	}
	if f.AnyHost {
		f.forAnyHost(c)
	}
	return c, nil
}

// roots are the authorities that are trusted, nil = the system's.
func (f TLSFiles) roots() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, &fileError{"tls_ca", err, "name a PEM file that this process may read"}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &fileError{"tls_ca", fmt.Errorf("%s has no certificate in PEM form", f.CA), "name a file with BEGIN CERTIFICATE in it"}
	}
	return pool, nil
}

// pair reads the client's certificate.
func (f TLSFiles) pair() (*tls.Certificate, error) {
	switch {
	case f.Cert == "":
		return nil, &fileError{"tls_cert", errors.New("a key without a certificate"), "set tls_cert too, or neither"}
	case f.Key == "":
		return nil, &fileError{"tls_key", errors.New("a certificate without a key"), "set tls_key too, or neither"}
	}
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return nil, &fileError{"tls_cert", err, "name a PEM file that this process may read"}
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return nil, &fileError{"tls_key", err, "name a PEM file that this process may read"}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &fileError{"tls_cert", fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err), "name a certificate and its key, both as PEM"}
	}
	return &pair, nil
}

// forAnyHost makes a configuration check a broker's certificate but for its name.
// Package tls has no such choice but to check nothing, so all of it is done here,
// with the authorities as they are then.
func (f TLSFiles) forAnyHost(c *tls.Config) {
	c.InsecureSkipVerify = true //nolint:gosec // VerifyConnection checks all but the name, as the setting asks
	c.VerifyConnection = func(s tls.ConnectionState) error {
		roots, err := f.roots()
		if err != nil {
			return err
		}
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		if _, err := s.PeerCertificates[0].Verify(o); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		return nil
	}
}
