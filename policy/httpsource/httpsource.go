// Package httpsource asks an HTTP endpoint for the effective policies of a scope:
//
//	GET <url>?scope=<scope>&workspace=<id>
//	Authorization: Bearer <the session's credential, or the configured token>
//
// The answer must have the status 200 and the body
//
//	{"policies": [{"name": "...", "position": "prepend", "text": "...", "inherited": true}],
//	 "objectives": ["..."]}
//
// in reading order. One of the lists may be null or absent; "inherited" may be absent. For the
// statuses 401 and 403 the error is [policy.ErrUnauthorized], and for 404
// [policy.ErrUnknownScope]. For everything else, such as another status, an unknown member, more
// than 1 MiB, or an answer after the timeout, it is [policy.ErrUnavailable].
//
// The credential is sent only to the configured host, over TLS or to this machine. No error
// contains it: errors contain the host and path of the endpoint, but not the query and no part
// of the answer.
//
// The package does not retry and keeps no connection open: there is only one request per
// session, and the caller can continue without the answer.
package httpsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/internal/fetch"
	"github.com/attache-mcp/attache/internal/loopback"
	"github.com/attache-mcp/attache/policy"
)

const (
	// DefaultTimeout is the default of [Options].Timeout.
	DefaultTimeout = 2 * time.Second

	maxAnswerBytes = 1 << 20
	maxRedirects   = 3
)

// Options are the options of [New]. Only URL is required.
type Options struct {
	// URL is the endpoint: https, or http to this machine. If it has a query, New adds to it.
	URL string
	// Timeout bounds a request, from the look-up of the host to the last byte; 0 means
	// [DefaultTimeout].
	Timeout time.Duration
	// Token is sent in place of the query's credential if it is not empty.
	Token policy.Credential
	// Client sends the requests; nil means one that keeps no connections. Its rules for
	// redirects and cookies are ignored.
	Client *http.Client
}

// A Source requests policies from an endpoint.
type Source struct {
	url     *url.URL
	timeout time.Duration
	token   policy.Credential
	client  func() *http.Client
}

var _ policy.Source = (*Source)(nil)

// New returns a Source for o.URL, without connecting to it yet. An error means that o.URL is
// invalid.
func New(o Options) (*Source, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	return &Source{
		url:     u,
		timeout: cmp.Or(o.Timeout, DefaultTimeout),
		token:   o.Token,
		client:  sync.OnceValue(func() *http.Client { return fetch.NewClient(o.Client, sameHost) }),
	}, nil
}

// parseURL parses the endpoint's address. Its errors do not quote the address, which may
// contain a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, errors.New("policy.url is not an address: write it as https://host/path")
	}
	query := u.Query()
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("policy.url is not the address of an HTTP endpoint: write it as https://host/path")
	case u.Scheme == "http" && !loopback.Is(u.Hostname()):
		return nil, errors.New("policy.url would send the credential in clear: use https, or http to localhost")
	case u.User != nil:
		return nil, errors.New("policy.url has a user name in it: take it out and give a token with policy.token_env")
	case query.Has("scope") || query.Has("workspace"):
		return nil, errors.New("policy.url has a scope or workspace in its query: take it out, attache adds it")
	}
	u.Fragment = ""
	return u, nil
}

// sameHost allows a redirect only to the host of the first request.
func sameHost(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	switch {
	case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host || next.URL.User != nil:
		return errors.New("it redirects to another host")
	case len(before) > maxRedirects:
		return errors.New("it redirects too often")
	}
	return nil
}

// Effective implements [policy.Source].
func (s *Source) Effective(ctx context.Context, q policy.Query) (policy.Effective, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := s.request(ctx, q)
	if err != nil {
		return policy.Effective{}, err
	}
	body, err := fetch.Do(s.client(), request, maxAnswerBytes)
	if status, ok := errors.AsType[fetch.StatusError](err); ok {
		return policy.Effective{}, s.refusal(int(status))
	}
	switch {
	case errors.Is(err, fetch.ErrTooLong):
		return policy.Effective{}, s.fault("answered with more than 1 MiB: see whether policy.url is right")
	case err != nil:
		return policy.Effective{}, s.down(ctx, err)
	}
	effective, err := decode(body)
	if err != nil {
		return policy.Effective{}, s.fault("answered with something that is not policies (%v): see whether policy.url is right", err)
	}
	return effective, nil
}

func (s *Source) request(ctx context.Context, q policy.Query) (*http.Request, error) {
	u := *s.url
	query := url.Values{"scope": {q.Scope}, "workspace": {q.Workspace}}.Encode()
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery = query
	request := (&http.Request{
		Method: http.MethodGet,
		URL:    &u,
		Host:   u.Host,
		Header: http.Header{"Accept": {"application/json"}, "User-Agent": {"attache"}},
	}).WithContext(ctx)
	credential := cmp.Or(s.token, q.Credential)
	if strings.ContainsFunc(credential.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%w: it has characters that no token has: correct the key", policy.ErrUnauthorized)
	}
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential.Reveal())
	}
	return request, nil
}

// refusal returns the error for a status other than 200.
func (s *Source) refusal(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s answered %d: see whether the key is right and may read this scope", policy.ErrUnauthorized, s.name(), status)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s answered 404: see whether the scope and policy.url are right", policy.ErrUnknownScope, s.name())
	}
	return s.fault("answered %d: see what is wrong there", status)
}

// down returns the error for a request without a complete answer.
func (s *Source) down(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s: %w: see why it is slow or raise policy.timeout (%v)",
			policy.ErrUnavailable, s.name(), context.DeadlineExceeded, s.timeout)
	}
	return fmt.Errorf("%w: %s: %w: see whether it is up and policy.url is right", policy.ErrUnavailable, s.name(), err)
}

// fault returns the error for an invalid answer.
func (s *Source) fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", policy.ErrUnavailable, s.name(), fmt.Sprintf(format, args...))
}

// name returns the endpoint's address for errors. It omits the query, which may have a token.
func (s *Source) name() string {
	return (&url.URL{Scheme: s.url.Scheme, Host: s.url.Host, Path: s.url.Path}).String()
}
