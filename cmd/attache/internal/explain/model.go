package explain

import (
	"encoding/json"

	"github.com/attache-mcp/attache/sessionstate"
)

// An explanation is what `attache explain --json` prints, documented in docs/explain.md. Members
// may be added but not removed; unknown values are left out.
type explanation struct {
	// Version is the version of the form: 1.
	Version int          `json:"version"`
	Calls   []callReport `json:"calls"`
}

// Outcomes of a frame.
const (
	outcomeGoesOn  = "goes-on" // it reaches the server
	outcomeRefused = "refused" // attache answers it
	outcomeDropped = "dropped" // a notification that goes no further
)

// A callReport is what would happen to one frame.
type callReport struct {
	Method string          `json:"method"`
	Tool   string          `json:"tool,omitempty"`
	Frame  json.RawMessage `json:"frame"`
	// Schema says where the tools' schemas are from.
	Schema string `json:"schema"`
	// Servers are the entries of servers that hold, the user's own first.
	Servers []serverReport `json:"servers,omitempty"`
	// Hidden says that the list of tools the model is shown lacks the tool. Of a
	// recording that is not known.
	Hidden  bool          `json:"hidden,omitempty"`
	Facts   []factReport  `json:"facts"`
	Layers  []layerReport `json:"layers"`
	Outcome string        `json:"outcome"`
	// By is what decided an outcome other than goes-on: a layer, or "relay".
	By string `json:"by,omitempty"`
	// Ambiguity says why parsers may read the frame differently, so that it passes
	// no layer.
	Ambiguity string `json:"ambiguity,omitempty"`
	// Sent is what the server gets, Answer what the client gets from attache
	// instead, and Text what the model reads in it.
	Sent   json.RawMessage `json:"sent,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Text   string          `json:"text,omitempty"`
}

// A serverReport is one entry of servers: its name, and its file and line.
type serverReport struct {
	Name string `json:"name"`
	At   string `json:"at"`
}

// A factReport is one fact of the session with its provenance.
type factReport struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	From   string `json:"from,omitempty"`
}

// A layerReport is what one layer did, in the order of the chain.
type layerReport struct {
	Name string `json:"layer"`
	// Reached is false for a layer behind one that answered or dropped the frame.
	Reached bool         `json:"reached"`
	Notes   []noteReport `json:"notes,omitempty"`
	// Request and Reply are what the layer changed.
	Request *editReport `json:"request,omitempty"`
	Reply   *editReport `json:"reply,omitempty"`
}

// An editReport is a frame before and after a layer.
type editReport struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// A noteReport is what one rule did.
type noteReport struct {
	// Rule is the key of the rule in the configuration, Config what stands there, and At
	// the file and line.
	Rule   string `json:"rule,omitempty"`
	Config string `json:"config,omitempty"`
	At     string `json:"at,omitempty"`
	Act    string `json:"act"`
	Why    string `json:"why,omitempty"`
	// On is "request" or "reply".
	On     string          `json:"on"`
	Path   []string        `json:"path,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Source is where After came from.
	Source string `json:"source,omitempty"`
	// Inputs are the facts that the rule names.
	Inputs []factReport `json:"inputs,omitempty"`
}

// rawJSON returns b as it may stand in JSON: as it is, or as a string.
func rawJSON(b []byte) json.RawMessage {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return json.RawMessage(b)
	}
	quoted, _ := json.Marshal(string(b)) // a string never fails
	return quoted
}

// knownFacts returns what is known, and what of a principal is no single fact.
func knownFacts(view *sessionstate.Context) []factReport {
	var all []factReport
	for _, path := range sessionstate.KnownPaths() {
		f, _ := view.Lookup(path)
		if !f.Empty() {
			all = append(all, factReport{path, f.Value, f.Source.String(), f.From})
		}
	}
	if view == nil || view.Principal == nil {
		return all
	}
	for _, list := range []struct {
		path  string
		words []string
	}{{"principal.roles", view.Principal.Roles}, {"principal.permissions", view.Principal.Permissions}} {
		value, _ := json.Marshal(list.words) // strings never fail
		if len(list.words) > 0 {
			all = append(all, factReport{list.path, string(value), sessionstate.Credential.String(), view.Principal.KeyID})
		}
	}
	return all
}
