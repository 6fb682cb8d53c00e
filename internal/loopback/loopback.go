// Package loopback recognises names and addresses of this machine.
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether host is localhost or a loopback address. Other names may resolve to this
// machine now, but to another one later.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
