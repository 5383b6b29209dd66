package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
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
func (s Setup) transport(limits Limits) (*http.Transport, error) {
	roots, err := s.roots()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTime,
		ResponseHeaderTimeout:  span(limits.HeadersMS),
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           limits.Concurrent,
		MaxIdleConnsPerHost:    limits.Concurrent,
		IdleConnTimeout:        restTime,
		DisableCompression:     true,
		ReadBufferSize:         pieceSize,
		WriteBufferSize:        requestSize,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if s.Proxy != "" {
		proxy, err := url.Parse(s.Proxy)
		if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" {
			return nil, errors.New("cannot use the proxy: want an http or https address")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
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

// secrets are what no line may show.
func (s Setup) secrets() []string {
	var all []string
	for _, p := range s.Providers {
		all = append(all, string(p.Key))
	}
	if proxy, err := url.Parse(s.Proxy); err == nil && proxy.User != nil {
		password, _ := proxy.User.Password()
		all = append(all, password)
	}
	return all
}
