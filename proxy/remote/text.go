package remote

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// elided shortens the text of a server for an error.
func elided(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// statusText returns the number and name of an HTTP status.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// minSecret and minQuery are the lengths in bytes from which secrets hides the value of a header and of a parameter: a
// shorter one may be a part of ordinary words. Most parameters are such words, as in region=europe.
const minSecret, minQuery = 6, 16

// secrets returns the values of a request that may be credentials, the longest first. They are those of headers that
// the protocol does not define, and those in the query of the address.
func secrets(r *http.Request) (all []string) {
	if r == nil {
		return nil
	}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{"Accept", "Content-Type", "User-Agent", "Last-Event-Id", "Traceparent", "Tracestate"}, name) {
			continue
		}
		for _, value := range values {
			_, token, _ := strings.Cut(value, " ") // after "Bearer"
			all = append(all, value, token)
		}
	}
	for parameter := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if _, value, _ := strings.Cut(parameter, "="); len(value) >= minQuery {
			all = append(all, value)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
