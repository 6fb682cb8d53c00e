package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/remote"
)

const (
	protocolError = 1 // codes of errors (RFC 9113, section 7)
	refusedStream = 7
	goAway        = 1 << 31 // in place of a code: the server closes the connection, and has not processed the stream
)

// A call whose stream the server resets with PROTOCOL_ERROR is not sent again: proxies in front of a server do so
// when they cannot pass on its answer. A call that the server has refused is sent again.
func TestU29StreamReset(t *testing.T) {
	for _, test := range []struct {
		name   string
		resets []uint32 // of the streams of the call; the one after them is answered
		want   string
		sent   int64
	}{
		{"it may be executed", []uint32{protocolError}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the connection to …`, 1},
		{"the server refuses it", []uint32{refusedStream}, result, 2},
		{"the server goes away", []uint32{goAway}, result, 2},
		{"the server goes away several times", []uint32{goAway, goAway, goAway, goAway, goAway}, result, 6},
		{"it may be executed later", []uint32{refusedStream, protocolError}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the connection to …`, 2},
		{"the server refuses it again and again", []uint32{refusedStream, refusedStream}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at …`, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent atomic.Int64
			server, transport := newFrameServer(t, func() (reset uint32) {
				if n := int(sent.Add(1)); n <= len(test.resets) {
					return test.resets[n-1]
				}
				return 0
			})
			c := connectTo(t, server, transport)
			c.send(call)
			c.expect(test.want)
			c.close()
			if n := sent.Load(); n != test.sent {
				t.Errorf("the call was sent %d times", n)
			}
		})
	}
}

// A message over the hold limit can be sent once. The error says whether the server may have executed it.
func TestLongMessageGoAway(t *testing.T) {
	server, transport := newFrameServer(t, func() uint32 { return goAway })
	c := connectTo(t, server, transport, func(o *remote.Options) { o.Hold = len(call) / 2 })
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at …`)
	c.close()
}

// If a connection is closed between the choice of it for a call and the first byte, the call is sent on another one.
func TestConnectionClosedBeforeCall(t *testing.T) {
	var sent atomic.Int64
	server, transport := newFrameServer(t, func() uint32 { sent.Add(1); return 0 })
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		b := &brittleConn{Conn: c}
		b.closed, b.close = context.WithCancel(context.Background())
		return b, nil
	}
	c := connectTo(t, server, transport, func(o *remote.Options) { o.Transport = breaker{transport} })
	for range 2 {
		c.send(call)
		c.expect(result)
	}
	c.close()
	if n := sent.Load(); n != 2 {
		t.Errorf("two calls were sent %d times", n)
	}
}

// A breaker breaks off each used connection that it has chosen for a request.
type breaker struct{ http.RoundTripper }

func (b breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			info.Conn.(*tls.Conn).NetConn().(*brittleConn).breakOff()
		}
	}})))
}

// A brittleConn is a connection whose reads fail from breakOff on.
type brittleConn struct {
	net.Conn
	closed context.Context
	close  func()
}

// breakOff returns when the transport has closed the connection.
func (c *brittleConn) breakOff() {
	_ = c.SetReadDeadline(time.Unix(1, 0))
	<-c.closed.Done()
}

func (c *brittleConn) Close() error {
	defer c.close()
	return c.Conn.Close()
}

// newFrameServer starts a server of HTTP/2 and returns it with a transport. next returns the code with which the next
// stream is reset, 0 if it is answered with result.
func newFrameServer(t *testing.T, next func() (reset uint32)) (*httptest.Server, *remote.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{NextProtos: []string{"h2"}}
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) { serveFrames(c, next) },
	}
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, remote.NewTransport(remote.TransportOptions{TLS: &tls.Config{RootCAs: roots}})
}

// serveFrames serves one connection (RFC 9113, section 4.1).
func serveFrames(c io.ReadWriter, next func() (reset uint32)) {
	const data, headers, rst, settings, away = 0, 1, 3, 4, 7
	const endStream, ack, endHeaders = 1, 1, 4
	write := func(kind, flags byte, stream uint32, payload []byte) {
		b := []byte{0, 0, byte(len(payload)), kind, flags}
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(b, stream), payload...))
	}
	if _, err := io.CopyN(io.Discard, c, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	write(settings, 0, 0, nil)
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		length, kind, flags, stream := binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)), head[3], head[4], binary.BigEndian.Uint32(head[5:])
		if _, err := io.CopyN(io.Discard, c, int64(length)); err != nil {
			return
		}
		switch {
		case kind == settings && flags&ack == 0:
			write(settings, ack, 0, nil)
		case (kind == data || kind == headers) && flags&endStream != 0:
			switch reset := next(); reset {
			case 0:
			case goAway:
				write(away, 0, 0, make([]byte, 8))
				continue
			default:
				write(rst, 0, stream, binary.BigEndian.AppendUint32(nil, reset))
				continue
			}
			// :status 200 and content-type (RFC 7541, section 6).
			write(headers, endHeaders, stream, append([]byte{0x88, 0x5F, byte(len("application/json"))}, "application/json"...))
			write(data, endStream, stream, []byte(result))
		}
	}
}
