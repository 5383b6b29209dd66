package images

import (
	"fmt"

	"abl/internal/cacerts"
)

// certificates gives the authorities that downloads of a build trust beside
// the public ones, or nothing. Only certificates go on: a file may hold a key too.
func (m *Maker) certificates() ([]byte, error) {
	path, from := m.CACert, "--ca-cert"
	if path == "" {
		path, from = m.env("ABL_CA_CERT"), "ABL_CA_CERT"
	}
	if path != "" {
		certs, err := cacerts.Read(path)
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
		certs, err := cacerts.Read(path)
		if err != nil {
			m.say("not trusting the certificates of %s: %v", from, err)
			continue
		}
		m.say("downloads trust the certificates of %s (%s)", path, from)
		return certs, nil
	}
	return nil, nil
}
