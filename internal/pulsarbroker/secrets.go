// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// administrator is the role of the kit and of the broker's own clients.
const administrator = "admin"

// secrets are what brokers and clients prove themselves with: a key for tokens,
// an authority, and what it has signed.
type secrets struct {
	folder string
	key    []byte
}

func (s *secrets) path(name string) string { return filepath.Join(s.folder, name) }

// newSecrets makes all of them in a folder.
func newSecrets(folder string) (*secrets, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s := &secrets{folder: folder, key: make([]byte, 32)}
	_, _ = rand.Read(s.key) // it does not fail
	if err := os.WriteFile(s.path("token-key"), s.key, 0o600); err != nil {
		return nil, err
	}
	return s, s.certificates()
}

// token returns a token for a role, which ends at a time unless it is zero
// [RFC 7519, HS256].
func (s *secrets) token(role string, ends time.Time) string {
	claims := map[string]any{"sub": role}
	if !ends.IsZero() {
		claims["exp"] = ends.Unix()
	}
	body, _ := json.Marshal(claims) // a string and a number
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"HS256"}`)) + "." + part(body)
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(signed))
	return signed + "." + part(mac.Sum(nil))
}

// lines are those of the broker's configuration.
func (s *secrets) lines(c Config, tlsPort int) []string {
	var lines []string
	const providers = "org.apache.pulsar.broker.authentication."
	if c.Tokens || c.ClientCertificates {
		lines = append(lines, "authenticationEnabled=true",
			"authenticationProviders="+providers+"AuthenticationProviderToken,"+providers+"AuthenticationProviderTls",
			"tokenSecretKey=file://"+s.path("token-key"), "superUserRoles="+administrator,
			"brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
			"brokerClientAuthenticationParameters=token:"+s.token(administrator, time.Time{}))
	}
	if c.Authorize {
		lines = append(lines, "authorizationEnabled=true", "allowAclChangesOnNonExistentTopics=true")
	}
	if c.TLS {
		lines = append(lines, fmt.Sprintf("brokerServicePortTls=%d", tlsPort), "tlsCertificateFilePath="+s.path("server.pem"),
			"tlsKeyFilePath="+s.path("server-key.pem"), "tlsTrustCertsFilePath="+s.path("ca.pem"),
			fmt.Sprintf("tlsRequireTrustedClientCertOnConnect=%t", c.ClientCertificates))
	}
	return lines
}

// certificates makes the authority and its certificates.
func (s *secrets) certificates() error {
	from, to := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := s.sign("ca", authority, authority, nil)
	if err != nil {
		return err
	}
	for name, cert := range map[string]*x509.Certificate{
		"server": {
			Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		},
		"client": {Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		cert.NotBefore, cert.NotAfter = from, to
		if _, err := s.sign(name, cert, authority, key); err != nil {
			return err
		}
	}
	return nil
}

// sign signs a certificate of a new key, by itself where there is no signer, and
// writes both as NAME.pem and NAME-key.pem.
func (s *secrets) sign(name string, of, by *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if signer == nil {
		signer = key
	}
	if of.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	for file, block := range map[string]*pem.Block{name: {Type: "CERTIFICATE", Bytes: cert}, name + "-key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(s.path(file+".pem"), pem.EncodeToMemory(block), 0o600); err != nil {
			return nil, err
		}
	}
	return key, nil
}
