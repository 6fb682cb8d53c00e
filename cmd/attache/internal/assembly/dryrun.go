package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// shown returns a function that returns what a person may see of a member's value:
// the beginning, without secrets.
func (s *Shared) shown() func(path []string, raw []byte) string {
	scrub := s.scrubbed()
	return func(path []string, raw []byte) string { return middleware.Clip(string(scrub(path, raw))) }
}

// scrubbed returns a function that takes the secrets in use, and what looks like one,
// out of a member's value.
func (s *Shared) scrubbed() func(path []string, raw []byte) []byte {
	return func(path []string, raw []byte) []byte { return ScrubMember(s.scrubber(), path, raw) }
}

// ScrubMember returns the raw JSON of the member at path without secrets, of which
// the member's name may be the only sign.
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
