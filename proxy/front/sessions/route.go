package sessions

import "strings"

// maxRoute is how long a route may be.
const maxRoute = 64

// Route returns the beginning of the id of a session that a request opens which a balancer has
// sent by route.
func Route(route string) string {
	if route == "" || len(route) > maxRoute || strings.Trim(route, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return route + "."
}
