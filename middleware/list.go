package middleware

import (
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxListTTL is the longest that clients may keep a list which a layer edited, in milliseconds.
const maxListTTL = 60_000

// LimitCaching adds the edits that limit how a list, or the answer to server/discover, is cached
// (specification, server/utilities/caching). edits are those of a layer so far, result is the result with
// the list, and layer the name for the notes.
//
// If private is true, cacheScope becomes "private", so that no other session is shown what is meant for
// this one. If private is true or there are edits, ttlMs becomes at most a minute: a reload can change
// the rules, and only clients with a subscription are told that the list has changed. A list of an era
// without caching is not changed.
func LimitCaching(edits []wire.Splice, call *Call, layer string, result wire.Value, private, modern bool) []wire.Splice {
	if !private && len(edits) == 0 {
		return nil
	}
	note := func(name, why string, before wire.Value, after []byte) {
		call.Note(Note{Layer: layer, Act: Edited, Why: why, Path: []string{"result", name}, Before: before.Raw, After: after})
	}
	ttl := result.Get("ttlMs")
	if ms, err := strconv.ParseFloat(string(ttl.Raw), 64); err == nil && ms > maxListTTL {
		after := strconv.AppendInt(nil, maxListTTL, 10)
		note("ttlMs", "rules can change", ttl, after)
		edits = append(edits, wire.Splice{Off: ttl.Off, Len: len(ttl.Raw), Text: after})
	}
	scope, after := result.Get("cacheScope"), []byte(`"private"`)
	switch {
	case !private, scope.Equals("private"), !scope.Exists() && !modern:
		return edits
	case scope.Exists():
		edits = append(edits, wire.Splice{Off: scope.Off, Len: len(scope.Raw), Text: after})
	default:
		edits = append(edits, wire.AddMember(result, "cacheScope", after))
	}
	note("cacheScope", "it depends on who asks", scope, after)
	return edits
}

// AnnotationsOf returns the annotations in an entry of tools/list as a [Tool] has them, so that
// rules judge the entry and the calls of a tool alike.
func AnnotationsOf(entry wire.Value) []byte {
	a := entry.Get("annotations")
	if !a.IsObject() || len(a.Raw) > maxAnnotations {
		return nil
	}
	return a.Raw
}
