package sessions

import (
	"net/http"
	"strings"
)

// routeHeader has what a balancer has chosen this front by, to open a session. The id of the
// session begins with it, so that the balancer can choose the same one by the id.
const routeHeader = "Attache-Route"

// maxRoute is how long a route may be.
const maxRoute = 64

// RouteOf returns the beginning of the id of a session that a request opens.
func RouteOf(h http.Header) string {
	route := h.Get(routeHeader)
	if route == "" || len(route) > maxRoute || strings.Trim(route, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return route + "."
}
