// Package accept reads which kinds of content a client of a front sends and takes.
package accept

import (
	"mime"
	"net/textproto"
	"strings"
)

// IsJSON reports whether a content type is that of JSON.
func IsJSON(contentType string) bool {
	if contentType == "application/json" {
		return true // as most write it
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// An Accept says what a client takes as an answer.
type Accept struct{ JSON, Events bool }

// Parse reads the header Accept. A client that sends none takes JSON.
func Parse(lines []string) (a Accept, ok bool) {
	switch {
	case len(lines) == 0:
		return Accept{JSON: true}, true
	case len(lines) == 1 && lines[0] == "application/json, text/event-stream":
		return Accept{true, true}, true // as most write it
	}
	for entry := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		kind := textproto.TrimString(entry)
		if strings.Contains(kind, ";") {
			var parameters map[string]string
			var err error
			if kind, parameters, err = mime.ParseMediaType(entry); err != nil || refusedQuality(parameters["q"]) {
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

// refusedQuality reports whether a weight is zero.
func refusedQuality(q string) bool { return q != "" && strings.Trim(q, "0.") == "" }
