package remote

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/attache-mcp/attache/proxy/remote/internal/ownconn"
)

// TransportOptions say how connections are made. The zero value of each is a default.
type TransportOptions struct {
	// Proxy returns the proxy for a request, nil for none; nil stands for no proxy.
	Proxy func(*http.Request) (*url.URL, error)

	// TLS has the authorities that are trusted and the certificate that is shown.
	TLS *tls.Config

	// Connect is how long a connection may take, and again its TLS handshake; 0 stands
	// for 30 s.
	Connect time.Duration
}

const (
	defaultConnect = 30 * time.Second
	// idleTime is how long a connection without a request stays open. Node closes its
	// end after 5 s, and a request that meets that is lost.
	idleTime = 4 * time.Second
	// buffer is how many bytes a connection reads or writes at once, 4 KiB by default.
	buffer = 2 << 10
)

// A Transport is an http.Transport in which streams that are open for hours take less memory.
type Transport = ownconn.Transport

// NewTransport returns what sends requests. Many servers may share it, so that their
// requests share connections.
func NewTransport(o TransportOptions) *Transport {
	if o.Connect <= 0 {
		o.Connect = defaultConnect
	}
	// A peer that is gone shows within 30 s also where nothing is said.
	dialer := &net.Dialer{Timeout: o.Connect, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	return ownconn.New(&http.Transport{
		Proxy:               o.Proxy,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: o.Connect,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     idleTime,
		// Each session may keep a stream open, and most messages are smaller.
		ReadBufferSize: buffer, WriteBufferSize: buffer,
		// A compressed stream is held back by compressors that do not flush.
		DisableCompression: true,
	})
}
