// Package fetch reads documents from addresses that the user has configured: policies, the keys of
// an issuer, a part of a configuration.
package fetch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A StatusError is the status of an answer that is not 200.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("it answered with status %d", int(e)) }

// ErrTooLong is returned for a document that is longer than allowed.
var ErrTooLong = errors.New("it is too long")

// NewClient returns a client with the transport of base, which may be nil, and a rule of its own for
// redirects (see [http.Client.CheckRedirect]). Without a transport it gets one that keeps no
// connections: no goroutine outlives a question.
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

// Do returns the document that the answer to r is, of up to most bytes. Errors do not have the
// address, which may have a token in it: the caller names it. They are a [StatusError], ErrTooLong,
// or what the network or the context says.
func Do(c *http.Client, r *http.Request, most int) ([]byte, error) {
	response, err := c.Do(r)
	if err != nil {
		if asked, ok := errors.AsType[*url.Error](err); ok {
			err = asked.Err
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
	document, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	if err == nil && len(document) > most {
		err = ErrTooLong
	}
	return document, err
}
