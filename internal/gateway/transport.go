package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	dialTime      = 20 * time.Second
	handshakeTime = 20 * time.Second

	// restTime is how long a connection to a provider is kept for the next request:
	// shorter than any server's own patience, for a request that meets a closing
	// connection is lost, since it cannot be sent twice.
	restTime = 15 * time.Second

	// requestSize, in bytes, lets a short prompt go out with its headers.
	requestSize = 8 << 10
)

// transport is the way to the providers. It speaks HTTP/1.1 alone, so that a
// stream that stalls or breaks holds up no other.
func (s Setup) transport() (*http.Transport, error) {
	roots, err := s.roots()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTime,
		ResponseHeaderTimeout:  span(s.Limits.HeadersMS),
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           s.Limits.Concurrent,
		MaxIdleConnsPerHost:    s.Limits.Concurrent,
		IdleConnTimeout:        restTime,
		DisableCompression:     true,
		ReadBufferSize:         pieceSize,
		WriteBufferSize:        requestSize,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t, nil
}

// roots are the authorities that a provider's certificate may come from.
func (s Setup) roots() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an empty image has none
	}
	if s.CA != "" && !pool.AppendCertsFromPEM([]byte(s.CA)) {
		return nil, errors.New("cannot use the setup's ca: there is no certificate in it")
	}
	return pool, nil
}
