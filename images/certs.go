package images

import (
	"encoding/pem"
	"fmt"
	"io"
	"os"
)

// maxCerts bounds a certificate file, in bytes; the largest public bundles are a twentieth.
const maxCerts = 8 << 20

// certificates gives the authorities that downloads of a build trust beside
// the public ones, or nothing. Only certificates go on: a file may hold a key too.
func (m *Maker) certificates() ([]byte, error) {
	path, from := m.CACert, "--ca-cert"
	if path == "" {
		path, from = m.env("ABL_CA_CERT"), "ABL_CA_CERT"
	}
	if path != "" {
		certs, err := readCerts(path)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificates of %s: %w", from, err)
		}
		return certs, nil
	}
	for _, from := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"} {
		path := m.env(from)
		if path == "" {
			continue
		}
		certs, err := readCerts(path)
		if err != nil {
			m.say("not trusting the certificates of %s: %v", from, err)
			continue
		}
		m.say("downloads trust the certificates of %s (%s)", path, from)
		return certs, nil
	}
	return nil, nil
}

func readCerts(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCerts+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxCerts {
		return nil, fmt.Errorf("%q is larger than %d bytes", path, maxCerts)
	}
	certs := onlyCerts(raw)
	if len(certs) == 0 {
		return nil, fmt.Errorf("no PEM certificate in %q", path)
	}
	return certs, nil
}

// onlyCerts keeps the certificates of a PEM file and drops everything else.
func onlyCerts(raw []byte) []byte {
	var certs []byte
	for {
		block, rest := pem.Decode(raw)
		if block == nil {
			return certs
		}
		if block.Type == "CERTIFICATE" {
			certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
		raw = rest
	}
}
