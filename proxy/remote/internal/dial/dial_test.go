package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A network has what happens at each address: "open", "open after 1s", "silent", or an error.
type network map[string]string

type conn struct {
	net.Conn
	address string
	closed  chan struct{}
}

func (c *conn) Close() error { close(c.closed); return nil }

func TestDial(t *testing.T) {
	for _, c := range []struct {
		name    string
		address string
		hosts   string // the addresses of the host
		network network
		want    string // the address of the connection, or the error
		after   time.Duration
	}{
		{"an address", "10.0.0.1:80", "", network{"10.0.0.1": "open"}, "10.0.0.1:80", 0},
		{"an IPv6 address", "[fd00::1]:80", "", network{"fd00::1": "open"}, "[fd00::1]:80", 0},
		{"a host with one", "a:80", "10.0.0.1", network{"10.0.0.1": "open"}, "10.0.0.1:80", 0},
		{"one that is silent", "a:80", "10.0.0.1", network{"10.0.0.1": "silent"}, "context deadline exceeded", 30 * time.Second},
		{"one that is mapped to IPv6", "a:80", "::ffff:10.0.0.1", network{"10.0.0.1": "open"}, "10.0.0.1:80", 0},
		{"the first of two", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "open after 200ms"}, "10.0.0.1:80", 200 * time.Millisecond},
		{"the first is silent", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "silent", "10.0.0.2": "open"}, "10.0.0.2:80", delay},
		{"two are silent", "a:80", "10.0.0.1 fd00::1 10.0.0.2", network{"10.0.0.1": "silent", "fd00::1": "silent", "10.0.0.2": "open"}, "10.0.0.2:80", 2 * delay},
		{"IPv6 is silent", "a:80", "fd00::1 fd00::2 fd00::3 10.0.0.1", network{"fd00::1": "silent", "fd00::2": "silent", "fd00::3": "silent", "10.0.0.1": "open"}, "10.0.0.1:80", delay},
		{"the first refuses", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "refused", "10.0.0.2": "open"}, "10.0.0.2:80", 0},
		{"the first is slow", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "open after 1s", "10.0.0.2": "open after 2s"}, "10.0.0.1:80", time.Second},
		{"all refuse", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "refused", "10.0.0.2": "no route"}, "refused", 0},
		{"all are silent", "a:80", "10.0.0.1 10.0.0.2", network{"10.0.0.1": "silent", "10.0.0.2": "silent"}, "context deadline exceeded", 30 * time.Second},
		{"no such host", "a:80", "", nil, "lookup a: no such host", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := make(chan *conn, 8)
				var attempts atomic.Int64
				d := New(&net.Dialer{Timeout: 30 * time.Second})
				d.lookup = func(context.Context, string, string) (all []netip.Addr, err error) {
					for text := range strings.FieldsSeq(c.hosts) {
						all = append(all, netip.MustParseAddr(text))
					}
					if all == nil {
						err = &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}
					}
					return all, err
				}
				d.dial = func(ctx context.Context, _, address string) (net.Conn, error) {
					attempts.Add(1)
					defer attempts.Add(-1)
					host, _, _ := net.SplitHostPort(address)
					does := c.network[host]
					after, opens := strings.CutPrefix(does, "open")
					switch {
					case opens:
						wait, _ := time.ParseDuration(strings.TrimPrefix(after, " after "))
						time.Sleep(wait) // also if ctx ends
						opened := &conn{address: address, closed: make(chan struct{})}
						made <- opened
						return opened, nil
					case does == "silent":
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, errors.New(does)
				}
				start := time.Now()
				got, err := d.DialContext(t.Context(), "tcp", c.address)
				if after := time.Since(start); after != c.after {
					t.Errorf("after %v, want %v", after, c.after)
				}
				switch {
				case err != nil && !strings.HasSuffix(err.Error(), c.want):
					t.Errorf("got %v, want %s", err, c.want)
				case err == nil && got.(*conn).address != c.want:
					t.Errorf("got %s, want %s", got.(*conn).address, c.want)
				}
				time.Sleep(2 * time.Second) // until those that are late are open
				if n := attempts.Load(); n > 0 {
					t.Errorf("%d attempts go on", n)
				}
				for range len(made) {
					if m := <-made; got != net.Conn(m) {
						<-m.closed
					}
				}
			})
		})
	}
}
