// Package cacerts reads the certificates of authorities out of PEM files: those
// that this machine trusts, and those that a person names. What they are used for may
// not be in it.
package cacerts

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
)

// maxBundle bounds what a Bundle holds: it travels in one line.
const maxBundle = 3 << 20

// usual are the files in which systems keep all that they trust.
var usual = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // SUSE
	"/etc/ssl/cert.pem",      // macOS, BSD
}

// Read gives the certificates of a PEM file and nothing else of it: a file may
// hold a key too.
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

// Only keeps the certificates of a PEM text, each once.
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

// Finder looks for certificates.
type Finder struct {
	// SSL_CERT_FILE stands for the system's own file, NODE_EXTRA_CA_CERTS adds to it.
	Env   func(string) string
	Extra string // a file that the person names, "" for none
}

// Bundle gives all that a program without certificates of its own needs: the
// system's, the environment's and the person's, each once. The person's alone is enough where the
// system tells none.
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
		return nil, fmt.Errorf("cannot find the certificates that this machine trusts: there is none of %q", usual)
	}
	// What cannot be read there is passed over, as Node does.
	more, _ := Read(f.Env("NODE_EXTRA_CA_CERTS"))
	var extra []byte
	if f.Extra != "" {
		if extra, err = Read(f.Extra); err != nil {
			return nil, err
		}
	}
	if certs = Only(slices.Concat(certs, more, extra)); len(certs) > maxBundle {
		return nil, fmt.Errorf("%d bytes of certificates are more than the %d that fit: name a file with fewer", len(certs), maxBundle)
	}
	return certs, nil
}

// Own says whether this machine was told to trust more than its system comes with,
// so that programs in a container need to be told too.
func (f Finder) Own() bool {
	return f.Extra != "" || f.Env("SSL_CERT_FILE") != "" || f.Env("NODE_EXTRA_CA_CERTS") != ""
}

// Pool is a Bundle as Go's TLS wants it.
func (f Finder) Pool() (*x509.CertPool, error) {
	certs, err := f.Bundle()
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(certs) {
		err = errors.New("none of the certificates that this machine trusts can be read")
	}
	return pool, err
}
