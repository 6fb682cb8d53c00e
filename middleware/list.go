package middleware

import "github.com/attache-mcp/attache/proxy/wire"

// PrivateList returns the edit that sets the cacheScope of a list, or of the answer to
// server/discover, to "private", so that no other session is shown what a layer edited for
// this one (specification, server/utilities/caching). result is the result with the list,
// layer the name for the note about the edit. It returns no edit for a list that is already
// private, or of an era without caching.
func PrivateList(call *Call, layer string, result wire.Value, modern bool) []wire.Splice {
	scope := result.Get("cacheScope")
	if scope.Equals("private") || !scope.Exists() && !modern {
		return nil
	}
	after := []byte(`"private"`)
	call.Note(Note{
		Layer: layer, Act: Edited, Why: "it depends on who asks",
		Path: []string{"result", "cacheScope"}, Before: scope.Raw, After: after,
	})
	if scope.Exists() {
		return []wire.Splice{{Off: scope.Off, Len: len(scope.Raw), Text: after}}
	}
	return []wire.Splice{wire.AddMember(result, "cacheScope", after)}
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
