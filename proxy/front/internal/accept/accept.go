// Package accept parses the kinds of content that a client of a front sends and accepts. It is called with each
// request, so the usual spellings are compared first: parsing allocates.
package accept

import (
	"mime"
	"net/textproto"
	"strings"
)

// IsJSON reports whether a content type is that of JSON.
func IsJSON(contentType string) bool {
	if contentType == "application/json" {
		return true // the usual spelling
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// An Accept has the kinds of content that a client accepts.
type Accept struct{ JSON, Events bool }

// Parse parses the lines of the header Accept. A client without that header accepts JSON. ok is
// false if the client accepts neither kind. The specification wants both kinds in the header of a POST, but one
// kind is enough: a client gets an answer of the kind that it accepts. Parse ignores an entry that is not valid.
func Parse(lines []string) (a Accept, ok bool) {
	switch {
	case len(lines) == 0:
		return Accept{JSON: true}, true
	case len(lines) == 1 && lines[0] == "application/json, text/event-stream":
		return Accept{true, true}, true // the usual spelling
	}
	for entry := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		kind := textproto.TrimString(entry)
		if strings.Contains(kind, ";") {
			var parameters map[string]string
			var err error
			if kind, parameters, err = mime.ParseMediaType(entry); err != nil || zeroQuality(parameters["q"]) {
				continue
			}
		}
		switch strings.ToLower(kind) {
		case "*/*":
			a = Accept{true, true}
		case "application/json", "application/*":
			a.JSON = true
		case "text/event-stream", "text/*":
			a.Events = true
		}
	}
	return a, a.JSON || a.Events
}

// zeroQuality reports whether a quality value is zero, which refuses the kind.
func zeroQuality(q string) bool { return q != "" && strings.Trim(q, "0.") == "" }
