package images

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
)

// maxBundle is the maximum size of a Bundle, which is passed as one line.
const maxBundle = 3 << 20

// systemCerts are the usual files with the system's CA certificates.
var systemCerts = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // SUSE
	"/etc/ssl/cert.pem",      // macOS, BSD
}

// CertVariables are the environment variables by which tools trust the certificates in a file.
var CertVariables = []string{
	"SSL_CERT_FILE",       // Go, OpenSSL, Ruby, uv
	"NODE_EXTRA_CA_CERTS", // Node, npm
	"PIP_CERT", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
}

// readCerts returns the certificates in a PEM file, without any other content such as keys.
func readCerts(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	certs := onlyCerts(raw)
	if len(certs) == 0 {
		return nil, fmt.Errorf("no PEM certificate in %q", path)
	}
	return certs, nil
}

// onlyCerts returns the certificates in a PEM text without duplicates.
func onlyCerts(raw []byte) []byte {
	var certs []byte
	seen := map[string]bool{}
	for {
		block, rest := pem.Decode(raw)
		if block == nil {
			return certs
		}
		if block.Type == "CERTIFICATE" && !seen[string(block.Bytes)] {
			seen[string(block.Bytes)] = true
			certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
		raw = rest
	}
}

// CACerts finds CA certificates: those of the system and those that the user names.
type CACerts struct {
	// Env returns an environment variable. SSL_CERT_FILE replaces the system's file,
	// NODE_EXTRA_CA_CERTS adds to it.
	Env   func(string) string
	Extra string // a file that the user names, may be ""
}

// Bundle returns the certificates for a program that has none: those of the system, the environment
// and the user, without duplicates. Without certificates of the system, those of the user suffice.
func (c CACerts) Bundle() (certs []byte, err error) {
	if path := c.Env("SSL_CERT_FILE"); path != "" {
		if certs, err = readCerts(path); err != nil {
			return nil, fmt.Errorf("cannot use the certificates of SSL_CERT_FILE: %w", err)
		}
	}
	for i := 0; i < len(systemCerts) && certs == nil; i++ {
		certs, _ = readCerts(systemCerts[i])
	}
	if certs == nil && c.Extra == "" {
		return nil, fmt.Errorf("cannot find the system's CA certificates: none of %q exists", systemCerts)
	}
	// Node.js ignores an unreadable file, too.
	more, _ := readCerts(c.Env("NODE_EXTRA_CA_CERTS"))
	var extra []byte
	if c.Extra != "" {
		if extra, err = readCerts(c.Extra); err != nil {
			return nil, err
		}
	}
	if certs = onlyCerts(slices.Concat(certs, more, extra)); len(certs) > maxBundle {
		return nil, fmt.Errorf("the certificates have %d bytes, want at most %d: name a file with fewer", len(certs),
			maxBundle)
	}
	return certs, nil
}

// Own reports whether the user configured CA certificates, so that programs in containers need
// them, too.
func (c CACerts) Own() bool {
	return c.Extra != "" || c.Env("SSL_CERT_FILE") != "" || c.Env("NODE_EXTRA_CA_CERTS") != ""
}

// Pool returns the Bundle as a CertPool.
func (c CACerts) Pool() (*x509.CertPool, error) {
	certs, err := c.Bundle()
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(certs) {
		err = errors.New("cannot parse any of the system's CA certificates")
	}
	return pool, err
}
