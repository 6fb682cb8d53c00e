package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/attache-mcp/attache/proxy/remote/internal/dial"
	"github.com/attache-mcp/attache/proxy/remote/internal/ownconn"
)

// TransportOptions configure connections. The zero value of each is a default.
type TransportOptions struct {
	// Proxy returns the proxy for a request, or nil to use none. If Proxy is nil, no proxy is used.
	Proxy func(*http.Request) (*url.URL, error)

	// TLS has the trusted authorities and the client certificate; nil means those of the system, and no
	// certificate.
	TLS *tls.Config

	// Connect is how long connecting may take, and then the TLS handshake; 0 means 30 s.
	Connect time.Duration
}

const (
	defaultConnect = 30 * time.Second
	// idleTime is how long an idle connection stays open. Node closes idle connections after 5 s, and
	// a request sent at that moment is lost.
	idleTime = 4 * time.Second
	// buffer is the size of a connection's buffers in bytes; the default is 4 KiB.
	buffer = 2 << 10
)

// A Transport is an http.Transport that needs less memory for streams that stay open for hours.
// CloseIdleConnections closes its unused connections.
type Transport = ownconn.Transport

// NewTransport returns a Transport. Many servers may share it, and then share connections.
func NewTransport(o TransportOptions) *Transport {
	if o.Connect <= 0 {
		o.Connect = defaultConnect
	}
	// So that a lost peer is noticed within 30 s even on an idle connection. It takes the system a quarter of an hour if
	// bytes were sent that it does not acknowledge. TCP_USER_TIMEOUT would shorten that, but Linux also ends a connection
	// with it whose peer only does not read, such as a server with one thread that works.
	dialer := &net.Dialer{Timeout: o.Connect, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	return ownconn.New(&http.Transport{
		Proxy:               o.Proxy,
		DialContext:         dial.New(dialer).DialContext,
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: o.Connect,
		ForceAttemptHTTP2:   true, // without it, a DialContext means HTTP/1.1 only
		// The same for HTTP/2, with pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		// With the default of 2, parallel calls would open and close connections all the time. There is no
		// MaxConnsPerHost: streams keep their connections, so a call could wait for one forever.
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     idleTime,
		// Each session may keep a stream open, and most messages are smaller than a buffer.
		ReadBufferSize: buffer, WriteBufferSize: buffer,
		// Many servers do not flush a compressed stream after each event.
		DisableCompression:     true,
		OnProxyConnectResponse: checkProxy,
	})
}

// checkProxy returns an error if a proxy refuses to connect to the server. That of http.Transport has the
// text of the status alone, which reads like an answer of the server.
func checkProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	text := fmt.Sprintf("the proxy at %s answered %s", proxy.Host, statusText(resp.StatusCode))
	if resp.StatusCode == http.StatusProxyAuthRequired {
		text += proxyAdvice
	}
	return errors.New(text)
}

// proxyAdvice tells the user how to give a password to a proxy.
const proxyAdvice = ": put its user and password into the URL of the proxy"
