// Package loopback recognises the names and addresses of this machine.
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether a host name or address can only be this machine. Another name that resolves
// to it now can resolve elsewhere later.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
