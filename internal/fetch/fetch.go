// Package fetch downloads documents from configured addresses: policies, the keys of an issuer,
// a part of a configuration.
package fetch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A StatusError is the status of a response other than 200.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("it answered with status %d", int(e)) }

// ErrTooLong is returned for documents longer than the limit.
var ErrTooLong = errors.New("it is too long")

// NewClient returns a client with the transport of base, which may be nil, and redirect as its
// CheckRedirect. If base has no transport, the client keeps no connections, so that no goroutine
// outlives a request.
func NewClient(base *http.Client, redirect func(next *http.Request, before []*http.Request) error) *http.Client {
	c := &http.Client{CheckRedirect: redirect}
	if base != nil {
		c.Transport = base.Transport
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	}
	return c
}

// Do sends r and returns the body of the response, of at most limit bytes. The error is a
// [StatusError], [ErrTooLong], or that of the network or the context. It does not contain the
// address, which may contain a token: the caller adds the address without it.
func Do(c *http.Client, r *http.Request, limit int) ([]byte, error) {
	response, err := c.Do(r)
	if err != nil {
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			err = withURL.Err
		}
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			err = fmt.Errorf("%w: have this machine trust who signed it (on Linux also by SSL_CERT_FILE)", err)
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, StatusError(response.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err == nil && len(document) > limit {
		err = ErrTooLong
	}
	return document, err
}
