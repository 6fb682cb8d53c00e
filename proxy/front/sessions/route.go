package sessions

import "strings"

// maxRoute is the length of the longest route.
const maxRoute = 64

// Route returns the prefix of the id of a new session, for a balancer that sent its request
// with a route. It returns "" if the route is not valid.
func Route(route string) string {
	if route == "" || len(route) > maxRoute || strings.Trim(route, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return route + "."
}
