// Package cacerts reads CA certificates from PEM files: those of the system and those that the user
// names.
package cacerts

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

// usual are the usual files with the system's CA certificates.
var usual = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // SUSE
	"/etc/ssl/cert.pem",      // macOS, BSD
}

// Variables are the environment variables by which tools trust the certificates in a file.
var Variables = []string{
	"SSL_CERT_FILE",       // Go, OpenSSL, Ruby, uv
	"NODE_EXTRA_CA_CERTS", // Node, npm
	"PIP_CERT", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
}

// Read returns the certificates in a PEM file, without any other content such as keys.
func Read(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	certs := Only(raw)
	if len(certs) == 0 {
		return nil, fmt.Errorf("no PEM certificate in %q", path)
	}
	return certs, nil
}

// Only returns the certificates in a PEM text without duplicates.
func Only(raw []byte) []byte {
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

// Finder finds CA certificates.
type Finder struct {
	// Env returns an environment variable. SSL_CERT_FILE replaces the system's file,
	// NODE_EXTRA_CA_CERTS adds to it.
	Env   func(string) string
	Extra string // a file that the user names, may be ""
}

// Bundle returns the certificates for a program that has none: those of the system, the environment
// and the user, without duplicates. Without certificates of the system, those of the user suffice.
func (f Finder) Bundle() (certs []byte, err error) {
	if path := f.Env("SSL_CERT_FILE"); path != "" {
		if certs, err = Read(path); err != nil {
			return nil, fmt.Errorf("cannot use the certificates of SSL_CERT_FILE: %w", err)
		}
	}
	for i := 0; i < len(usual) && certs == nil; i++ {
		certs, _ = Read(usual[i])
	}
	if certs == nil && f.Extra == "" {
		return nil, fmt.Errorf("cannot find the system's CA certificates: none of %q exists", usual)
	}
	// Node.js ignores an unreadable file, too.
	more, _ := Read(f.Env("NODE_EXTRA_CA_CERTS"))
	var extra []byte
	if f.Extra != "" {
		if extra, err = Read(f.Extra); err != nil {
			return nil, err
		}
	}
	if certs = Only(slices.Concat(certs, more, extra)); len(certs) > maxBundle {
		return nil, fmt.Errorf("the certificates have %d bytes, want at most %d: name a file with fewer", len(certs),
			maxBundle)
	}
	return certs, nil
}

// Own reports whether the user configured CA certificates, so that programs in containers need
// them, too.
func (f Finder) Own() bool {
	return f.Extra != "" || f.Env("SSL_CERT_FILE") != "" || f.Env("NODE_EXTRA_CA_CERTS") != ""
}

// Pool returns the Bundle as a CertPool.
func (f Finder) Pool() (*x509.CertPool, error) {
	certs, err := f.Bundle()
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(certs) {
		err = errors.New("cannot parse any of the system's CA certificates")
	}
	return pool, err
}
