package remote

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 5

// send sends one request, with the headers and credentials of the server, and returns the answer. It
// follows redirects to the same origin. If the server refuses the credential and there is a new one,
// it sends the request once more. Every request goes through send, from any goroutine. An unreachedError
// means that the server cannot have executed it.
func (s *Server) send(ctx context.Context, method string, h http.Header, b *body) (*http.Response, error) {
	to, refused, own := s.url, false, h
	if s.o.Credentials != nil {
		own = maps.Clone(h) // without the headers of the credential, because another may set fewer
	}
	// request adds to h, and http.Transport reads it until the body is written, so each attempt has its own.
	for hops := 0; ; h = maps.Clone(own) {
		r, err := s.request(ctx, method, to, h, b)
		if err != nil {
			return nil, err
		}
		resp, err := s.roundTrip(r, b)
		if err != nil {
			return nil, s.explain(err, b)
		}
		if resp.Header["Set-Cookie"] != nil {
			// to is the address that has answered, which may not be that of the first attempt.
			s.jar.SetCookies(to, resp.Cookies())
			s.cookies.Store(true)
		}
		switch {
		case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified:
			drain(resp)
			if to, err = s.redirected(to, resp); err != nil {
				return nil, err
			}
			if hops++; hops > maxRedirects {
				return nil, errors.New("the server redirects in a circle")
			}
		// A second refusal is the answer: with credentials that are refused again and again this would not end.
		case (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) && s.o.Credentials != nil && !refused:
			said := readRefusal(resp)
			again, err := s.o.Credentials.Refused(ctx, Refusal{resp.StatusCode, r.Header, resp.Header.Values("WWW-Authenticate"), said.words()})
			if err != nil {
				return nil, err
			}
			if !again {
				// The caller reads the refusal like any other.
				return said.again(resp), nil
			}
			refused = true
		default:
			return resp, nil
		}
	}
}

// maxResends is how many times a request is sent again immediately because the server closed the connection before it
// processed the request. A proxy such as nginx closes a connection after a number of requests, so a request may lose
// several connections in a row while other requests use them too.
const maxResends = 5

// roundTrip sends a request with the body b, and waits for the header of the answer. Only this is timed:
// a credential may take longer than the server.
func (s *Server) roundTrip(r *http.Request, b *body) (*http.Response, error) {
	if b != nil && b.timer != nil {
		defer b.timer().Stop()
	}
	resp, err := s.o.Transport.RoundTrip(r)
	for n := 0; b != nil && n < maxResends; n++ {
		why, unprocessed := resetReason(err)
		if !unprocessed || n > 0 && strings.Contains(why, "REFUSED_STREAM") { // the server has too much to do
			break
		}
		again, failed := *r, error(nil)
		if again.Body, failed = b.open(); failed != nil {
			break
		}
		resp, err = s.o.Transport.RoundTrip(&again)
	}
	if err == nil {
		s.http1.Store(resp.ProtoMajor == 1)
	}
	return resp, err
}

// resetReason returns why a request over HTTP/2 failed, if http.Transport would have sent it again with GetBody, and ""
// for any other error. It reads the text of the error, because the error has no type of its own. unprocessed reports
// whether the server has certainly not processed the request. It is false for PROTOCOL_ERROR, for example: a proxy
// also gives that reason if it cannot pass on an answer.
func resetReason(err error) (why string, unprocessed bool) {
	if err == nil {
		return "", false
	}
	// Nothing was written. http.Transport has closed the body, and cannot open it again without GetBody.
	if strings.HasSuffix(err.Error(), "cannot rewind body after connection loss") {
		return "the server closed the connection", true
	}
	_, after, _ := strings.Cut(err.Error(), "cannot retry err [")
	why, _, _ = strings.Cut(after, "] after Request.Body was written")
	return why, strings.Contains(why, "REFUSED_STREAM") || strings.Contains(why, "GOAWAY")
}

// request makes one request. The request keeps h, to which it adds headers.
func (s *Server) request(ctx context.Context, method string, to *url.URL, h http.Header, b *body) (*http.Request, error) {
	// The headers of the user fill gaps only: they must not replace Accept or the session id.
	for name, values := range s.o.Header {
		if h[name] == nil {
			h[name] = values
		}
	}
	if s.o.Credentials != nil {
		if err := s.o.Credentials.Set(ctx, h); err != nil {
			return nil, err
		}
	}
	// With one of these headers, http.Transport would resend a request that may have been executed.
	delete(h, "Idempotency-Key")
	delete(h, "X-Idempotency-Key")
	if b != nil {
		ctx = b.traced(ctx)
	}
	// A shallow copy. All fields that differ between requests are set below.
	r := s.template.WithContext(ctx)
	r.Method, r.URL, r.Host, r.Header = method, to, to.Host, h
	if s.cookies.Load() {
		r.Header = maps.Clone(h) // another attempt may have other cookies
		for _, c := range s.jar.Cookies(to) {
			r.AddCookie(c)
		}
	}
	if b != nil {
		var err error
		if r.Body, err = b.open(); err != nil {
			return nil, err
		}
		if r.ContentLength = b.size(); r.ContentLength >= 0 && (to.Scheme == "http" || s.http1.Load()) {
			// With it, http.Transport sends a request again if the connection was closed before any of it was written. Over
			// HTTP/2 it also would if the server may have executed the request: see resetReason.
			r.GetBody = b.open
		}
	}
	return r, nil
}

// redirected returns the target of a redirect, or why it is not followed.
func (s *Server) redirected(from *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fmt.Errorf("the server answered %s without saying where to go", statusText(resp.StatusCode))
	}
	// Of the first address, not of the last: a chain must not lead away step by step. Headers with secrets go along.
	if to.Scheme != s.url.Scheme || !strings.EqualFold(to.Hostname(), s.url.Hostname()) || port(to) != port(s.url) || to.User != nil {
		return nil, fmt.Errorf("the server redirects to %s://%s, which is another origin and not followed: if you trust it, use that address", to.Scheme, to.Host)
	}
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil, fmt.Errorf("the server redirects with %s to %s: use that address", statusText(resp.StatusCode), to.Path)
	}
	return to, nil
}

// port returns the port of an address. Balancers name the default port in redirects, and users do not.
func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// An unreachedError is the error of a request of which the server has received nothing.
type unreachedError struct{ error }

// Unwrap returns what unreachedError wraps.
func (e unreachedError) Unwrap() error { return e.error }

// hint says what to do about an error that does not say it.
func hint(err error) string {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return ": name the file of the authority in server.tls.ca, if you trust it"
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return ": if the server does not use TLS, write http:// in its address"
	}
	return ""
}

// explain turns an error of the transport into one for people. It leaves out the URL, which may
// contain a token. If there was no connection, or the header of the request was not written, it returns an
// unreachedError: then the message may be sent again.
func (s *Server) explain(err error, b *body) error {
	var op *net.OpError
	var dns *net.DNSError
	why, unprocessed := resetReason(err)
	if why != "" {
		err = errors.New(why)
	}
	switch {
	case unprocessed:
		return unreachedError{fmt.Errorf("the server at %s does not take the request: %w", s.url.Host, err)}
	// It comes first: the error of a dial that was cancelled is a net.OpError too. post replaces it by the cause.
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return unreachedError{fmt.Errorf("the host %s is not known: %s", dns.Name, dns.Err)}
	case errors.As(err, &op) && op.Op == "dial":
		return unreachedError{fmt.Errorf("the server at %s cannot be reached: %w", s.url.Host, op.Err)}
	// A GET or DELETE has no body, and may be sent again whatever the server has of it.
	case b == nil || !b.begun.Load():
		return unreachedError{fmt.Errorf("the server at %s cannot be reached: %s%s", s.url.Host, elided(err.Error()), hint(err))}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("the server closed the connection before it answered; it may have executed the request")
	}
	return fmt.Errorf("the connection to %s broke before the answer: %s; the server may have executed the request", s.url.Host, elided(err.Error()))
}

// decoded returns the body, decompressed if the server has used gzip without being asked to.
func decoded(resp *http.Response) (io.Reader, error) {
	switch e := strings.ToLower(resp.Header.Get("Content-Encoding")); e {
	case "", "identity": // readJSON tells by it that Content-Length is the length of the message
		return resp.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("the server's answer is not the gzip that it claims to be: %w", err)
		}
		return z, nil
	default:
		return nil, fmt.Errorf("the server's answer is compressed with %q, which was not asked for", elided(e))
	}
}

// drain discards the rest of an answer.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	resp.Body.Close()
}

// A refusal is an answer whose status is not a success.
type refusal struct {
	status     int
	after      string       // Retry-After
	unexecuted bool         // the server says that it did not execute the request
	text       []byte       // decompressed, without a byte order mark; at most maxRefusal bytes
	msg        wire.Message // in text, if that is a message
	code       int64        // of the JSON-RPC error in text, 0 if there is none
	secrets    []string     // of the request
}

// A front of attache sends executedHeader with a request that it did not execute, and frontHeader if
// another front has to be asked.
const executedHeader, frontHeader = "Attache-Executed", "Attache-Front"

// mark is a byte order mark.
const mark = "\xEF\xBB\xBF"

// maxRefusal is how many bytes of a refusal are read.
const maxRefusal = 1 << 20

// readRefusal reads and closes the body of resp.
func readRefusal(resp *http.Response) *refusal {
	r := &refusal{status: resp.StatusCode, after: resp.Header.Get("Retry-After"), secrets: secrets(resp.Request)}
	r.unexecuted = resp.Header.Get(executedHeader) == "nothing" || resp.Header.Get(frontHeader) != ""
	if from, err := decoded(resp); err == nil {
		r.text, _ = io.ReadAll(io.LimitReader(from, maxRefusal))
	}
	drain(resp)
	r.text = bytes.TrimPrefix(r.text, []byte(mark))
	r.msg.Reset(wire.Server, bytes.TrimSpace(r.text))
	if r.msg.LookEnvelope() && r.msg.Kind() == wire.Error {
		r.code, _ = integer(r.msg.ErrorObject().Get("code"))
	}
	return r
}

// words returns the error message of the server, or the beginning of its text.
func (r *refusal) words() string {
	if message := r.msg.ErrorObject().Get("message").Text(); message != "" {
		return r.shown(message)
	}
	return r.shown(string(r.text))
}

// shown returns the text of the server, or a part of it, for an error. Some servers repeat what they refuse, such as the
// access token (Spring Security) or the address.
func (r *refusal) shown(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return elided(text)
}

// again makes the body of resp, which readRefusal has read, readable again.
func (r *refusal) again(resp *http.Response) *http.Response {
	resp.Header.Del("Content-Encoding") // readRefusal has decoded it
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(r.text)), int64(len(r.text))
	return resp
}

// aboutSession matches the texts of servers that answer 400 where the specification demands 404.
var aboutSession = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)session|not initialized`) })

// lostSession reports whether the server no longer knows the session. The specification says 404;
// server-everything, and the servers copied from it, answer 400 with such a text. An error about the method
// or its params shows that the server knows the session, whatever the status.
func (r *refusal) lostSession(t ticket) bool {
	return t.id != "" && r.code != wire.CodeMethodNotFound && r.code != wire.CodeInvalidParams && (r.status == http.StatusNotFound || r.status == http.StatusBadRequest && aboutSession().Match(r.text))
}
