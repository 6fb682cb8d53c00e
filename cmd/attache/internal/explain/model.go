package explain

import (
	"bytes"
	"encoding/json"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/sessionstate"
)

// An explanation is the output of `attache explain --json`, documented in docs/explain.md. Members may
// be added but not removed; unknown values are omitted.
type explanation struct {
	// Version is the version of the format: 1.
	Version int          `json:"version"`
	Calls   []callReport `json:"calls"`
}

// Outcomes of a frame.
const (
	outcomeGoesOn  = "goes-on" // it reaches the server
	outcomeRefused = "refused" // attache answers it
	outcomeDropped = "dropped" // a notification that goes no further
)

// A callReport describes what would happen to one frame.
type callReport struct {
	Method string          `json:"method"`
	Tool   string          `json:"tool,omitempty"`
	Frame  json.RawMessage `json:"frame"`
	// Schema is the source of the tools' schemas.
	Schema string `json:"schema"`
	// Servers are the entries of servers that apply, the user's own first.
	Servers []serverReport `json:"servers,omitempty"`
	// Hidden is true if the list of tools that the model sees lacks the tool. It is unknown for a
	// recording.
	Hidden  bool          `json:"hidden,omitempty"`
	Facts   []factReport  `json:"facts"`
	Layers  []layerReport `json:"layers"`
	Outcome string        `json:"outcome"`
	// By is the layer that decided an outcome other than goes-on, or "relay".
	By string `json:"by,omitempty"`
	// Ambiguity is the reason why parsers may read the frame differently, so that it passes no
	// layer.
	Ambiguity string `json:"ambiguity,omitempty"`
	// Sent is the frame that the server receives. Answer is the reply of attache to the client if
	// there is none, and Text the text in it for the model.
	Sent   json.RawMessage `json:"sent,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Text   string          `json:"text,omitempty"`
}

// A serverReport describes one entry of servers: its name, and its file and line.
type serverReport struct {
	Name string `json:"name"`
	At   string `json:"at"`
}

// A factReport describes one fact of the session with its source.
type factReport struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	From   string `json:"from,omitempty"`
}

// A layerReport describes what one layer did. Layers are in the order of the chain.
type layerReport struct {
	Name string `json:"layer"`
	// Reached is false if an earlier layer answered or dropped the frame.
	Reached bool         `json:"reached"`
	Notes   []noteReport `json:"notes,omitempty"`
	// Request and Reply are the changes that the layer made.
	Request *editReport `json:"request,omitempty"`
	Reply   *editReport `json:"reply,omitempty"`
}

// An editReport is a frame before and after a layer.
type editReport struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// A noteReport describes what one rule did.
type noteReport struct {
	// Rule is the key of the rule in the configuration, Config its text, and At its file and line.
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
	// Source is the source of After.
	Source string `json:"source,omitempty"`
	// Inputs are the facts that the rule uses.
	Inputs []factReport `json:"inputs,omitempty"`
}

// rawJSON returns b if it is JSON, with U+FFFD for what is not UTF-8, and otherwise b as a JSON string.
func rawJSON(b []byte) json.RawMessage {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return json.RawMessage(bytes.ToValidUTF8(b, []byte("\ufffd")))
	}
	quoted, _ := json.Marshal(string(b)) // cannot fail
	return quoted
}

// knownFacts returns the known facts, and the principal's roles and permissions.
func knownFacts(view *sessionstate.Context) []factReport {
	all := []factReport{}
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
		value, _ := json.Marshal(list.words) // cannot fail
		if len(list.words) > 0 {
			all = append(all, factReport{list.path, string(value), sessionstate.Credential.String(), view.Principal.KeyID})
		}
	}
	return all
}

// A scrubber removes secrets from parts of frames. Facts contain none.
type scrubber struct{ *record.Scrubber }

// json returns a frame without secrets, or nil if frame is nil.
func (s scrubber) json(frame []byte) json.RawMessage { return s.member(nil, frame) }

// member returns raw, the value of the member at path, without secrets, or nil if raw is nil.
func (s scrubber) member(path []string, raw []byte) json.RawMessage {
	if raw == nil {
		return nil
	}
	return assembly.ScrubMember(s.Scrubber, path, rawJSON(bytes.Clone(raw)))
}

func (s scrubber) text(text string) string { return string(s.Line([]byte(text))) }
