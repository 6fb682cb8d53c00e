package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// showMember returns the beginning of a member's value for a person, without secrets. It removes secrets before it
// clips the value, because it would not recognise a part of a secret.
func (s *Shared) showMember(path []string, raw []byte) string {
	return middleware.Clip(string(s.scrubMember(path, raw)))
}

// scrubMember returns a member's value without known secrets and values that look like one. Layers get it as a function,
// so that they need not know the secrets.
func (s *Shared) scrubMember(path []string, raw []byte) []byte {
	return ScrubMember(s.scrubber(), path, raw)
}

// ScrubMember returns the raw JSON of the member at path without secrets. Often only the name of
// the member shows that its value is secret. So for the path [auth password] and the value "x" it
// scrubs the object {"password":"x"}, and returns the value that the member then has.
func ScrubMember(scrub *record.Scrubber, path []string, raw []byte) []byte {
	if len(path) == 0 {
		return scrub.Line(raw)
	}
	key := wire.Quote(path[len(path)-1])
	line := slices.Concat([]byte{'{'}, key, []byte{':'}, raw, []byte{'}'})
	for m := range (wire.Value{Raw: scrub.Line(line)}).Members() {
		return m.Value.Raw
	}
	return nil
}
