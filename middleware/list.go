package middleware

import "github.com/attache-mcp/attache/proxy/wire"

// PrivateList returns the edit that keeps a list a layer has edited for one
// session from all others: its cacheScope becomes "private" (specification,
// server/utilities/caching). result is the list's, layer the name for the note
// that is made. It returns no edit for a list that is private already, or of an
// era that caches none.
func PrivateList(call *Call, layer string, result wire.Value, modern bool) []wire.Splice {
	scope := result.Get("cacheScope")
	if scope.Equals("private") || !scope.Exists() && !modern {
		return nil
	}
	after := []byte(`"private"`)
	call.Note(Note{
		Layer: layer, Act: Edited, Why: "the list depends on who asks",
		Path: []string{"result", "cacheScope"}, Before: scope.Raw, After: after,
	})
	if scope.Exists() {
		return []wire.Splice{{Off: scope.Off, Len: len(scope.Raw), Text: after}}
	}
	return []wire.Splice{wire.AddMember(result, "cacheScope", after)}
}

// AnnotationsOf returns the annotations in an entry of tools/list as a [Tool] has them, so that a
// tool is listed as its calls are judged.
func AnnotationsOf(entry wire.Value) []byte {
	a := entry.Get("annotations")
	if !a.IsObject() || len(a.Raw) > maxAnnotations {
		return nil
	}
	return a.Raw
}
