package explain

import (
	"encoding/json"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate"
)

// Outcomes of a frame.
const (
	outcomeGoesOn  = "goes-on" // it reaches the server
	outcomeRefused = "refused" // attache answers it
	outcomeDropped = "dropped" // a notification that goes no further
)

// A callReport is what would happen to one frame.
type callReport struct {
	Method string
	Tool   string
	Frame  []byte
	// Schema says where the tools' schemas are from.
	Schema string
	// Servers are the entries of servers that hold, the user's own first.
	Servers []config.Server
	// Hidden says that the list of tools the model is shown lacks the tool.
	Hidden  bool
	Facts   []factReport
	Layers  []layerReport
	Outcome string
	// By is what decided an outcome other than goes-on: a layer, or "relay".
	By string
	// Ambiguity says why parsers may read the frame differently, so that it passes
	// no layer.
	Ambiguity string
	// Sent is what the server gets, Answer what the client gets from attache
	// instead, and Text what the model reads in it.
	Sent   []byte
	Answer []byte
	Text   string
}

// A factReport is one fact of the session with its provenance.
type factReport struct {
	Name   string
	Value  string
	Source string
	From   string
}

// A layerReport is what one layer did, in the order of the chain.
type layerReport struct {
	Name string
	// Reached is false for a layer behind one that answered or dropped the frame.
	Reached bool
	Notes   []noteReport
	// Request and Reply are what the layer changed.
	Request *editReport
	Reply   *editReport
}

// An editReport is a frame before and after a layer.
type editReport struct {
	Before []byte
	After  []byte
}

// A noteReport is what one rule did.
type noteReport struct {
	// Rule is the key of the rule in the configuration, Config what stands there, and At
	// the file and line.
	Rule   string
	Config string
	At     string
	Act    string
	Why    string
	// On is "request" or "reply".
	On     string
	Path   []string
	Before []byte
	After  []byte
	// Source is where After came from.
	Source string
	// Inputs are the facts that the rule names.
	Inputs []factReport
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
