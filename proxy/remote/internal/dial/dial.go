// Package dial connects to hosts with several addresses, some of which may not answer.
//
// net.Dialer tries the addresses of a family one after another. An address that does not answer takes
// its part of the timeout: with 30 s and two addresses, 15 s for each new connection. Clients such as
// Node try the next address after 250 ms (RFC 8305), and so does this package.
package dial

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"
)

// delay is how long an address may take before the next one is tried too.
const delay = 250 * time.Millisecond

// A Dialer connects to hosts. Make one with New.
type Dialer struct {
	timeout time.Duration
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a Dialer that connects to each address with d, which must have a Timeout. The Timeout is
// for all addresses of a host together.
func New(d *net.Dialer) *Dialer {
	return &Dialer{timeout: d.Timeout, lookup: net.DefaultResolver.LookupNetIP, dial: d.DialContext}
}

// DialContext connects to a host and port.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	// An address needs no look-up, and the error of an invalid one is that of the net.Dialer.
	if _, notIP := netip.ParseAddr(host); err != nil || notIP == nil {
		return d.dial(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addresses, err := d.lookup(ctx, "ip", host)
	if err != nil {
		// net.Dialer returns such an error, too. From it, package remote knows that nothing was sent.
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return d.race(ctx, network, interleave(addresses), port)
}

// interleave returns the addresses so that the families alternate, beginning with that of the first (RFC 8305,
// section 4): a network that drops IPv6 drops it for all addresses.
func interleave(addresses []netip.Addr) (all []netip.Addr) {
	families := map[bool][]netip.Addr{}
	for _, a := range addresses {
		same := a.Unmap().Is4() == addresses[0].Unmap().Is4()
		families[same] = append(families[same], a)
	}
	for i := range addresses {
		for _, same := range []bool{true, false} {
			if family := families[same]; i < len(family) {
				all = append(all, family[i])
			}
		}
	}
	return all
}

func join(a netip.Addr, port string) string { return net.JoinHostPort(a.Unmap().String(), port) }

type result struct {
	conn net.Conn
	err  error
}

// race connects to the first address that accepts a connection. It begins with the next address after
// delay, or when one fails. If all fail, it returns the first error. When it has returned, the caller cancels the
// other attempts, which close connections that they make all the same.
func (d *Dialer) race(ctx context.Context, network string, addresses []netip.Addr, port string) (net.Conn, error) {
	// results has no buffer: a connection is either received, or closed by the attempt that made it.
	results, over := make(chan result), make(chan struct{})
	defer close(over)
	next := time.NewTimer(0)
	var first error
	for begun, failed := 0, 0; failed < len(addresses); {
		select {
		case <-next.C:
			address := join(addresses[begun], port)
			go func() {
				conn, err := d.dial(ctx, network, address)
				select {
				case results <- result{conn, err}:
				case <-over:
					if err == nil {
						_ = conn.Close()
					}
				}
			}()
			if begun++; begun < len(addresses) {
				next.Reset(delay)
			}
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			first = cmp.Or(first, r.err)
			if failed++; begun < len(addresses) {
				next.Reset(0) // the timer of an attempt that has failed need not run out
			}
		}
	}
	return nil, first
}
