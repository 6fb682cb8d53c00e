package toolresult

import (
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// memberName is the member of structuredContent that contains the texts.
const memberName = "session_context"

// memberSchema is its schema, added to output schemas in tools/list.
const memberSchema = `{"type":"string","description":"Policies and objectives of this session"}`

// Extends reports whether the member is added to the output schemas in lists. This depends only
// on the configuration and the client, not on earlier calls, so a list is always the same.
func (k *Memory) Extends(way Structured) bool {
	return way == Member || way == Auto && k.Client().StructuredAlone
}

type extendedKey struct{}

// Extend adds the member to the output schemas of a page of tools/list where this is safe,
// and remembers the tools whose results may have it. Only the first call for a reply has an
// effect, because several layers may call it.
func (k *Memory) Extend(call *middleware.Call, reply *wire.Message) error {
	if call.Marked(extendedKey{}) {
		return nil
	}
	call.Mark(extendedKey{})
	k.mu.Lock()
	defer k.mu.Unlock()
	if !reply.Plain() {
		k.members = nil // the client has a list that was not read
		return nil
	}
	if k.members == nil {
		k.members = map[string]bool{}
	}
	var splices []wire.Splice
	for entry := range reply.Get("result", "tools").Elements() {
		name := entry.Get("name").Text()
		schema := entry.Get("outputSchema")
		splice, ok := memberSplice(schema)
		if ok {
			splices = append(splices, splice)
		}
		// Without an output schema no client objects to another member.
		if delete(k.members, name); (ok || !schema.Exists()) && len(k.members) < maxMembers && len(name) <= maxTaskName {
			k.members[name] = true
		}
	}
	if err := reply.Apply(splices...); err != nil {
		k.members = nil
		return err
	}
	if len(splices) > 0 {
		call.Note(middleware.Note{
			Layer: "briefing", Rule: "briefing.structured", Act: middleware.Edited, Path: []string{"result", "tools"},
			Why: "one result may have the briefing in structuredContent, so output schemas admit it", Source: "attache",
		})
	}
	return nil
}

// memberSplice returns the edit that adds the member to an output schema. It reports false
// if the schema is not a plain object schema, because an unknown keyword may forbid the member
// and the TypeScript SDK validates structuredContent against the schema that it was shown.
func memberSplice(schema wire.Value) (wire.Splice, bool) {
	var typed bool
	var properties wire.Value
	for m := range schema.Members() {
		switch key := m.Key.Text(); key {
		case "type":
			typed = m.Value.Equals("object")
		case "properties":
			properties = m.Value
		case "required", "additionalProperties", "minProperties", "$schema", "$id", "$defs", "definitions",
			"$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
		default:
			return wire.Splice{}, false
		}
	}
	switch {
	case !typed:
		return wire.Splice{}, false
	case !properties.Exists():
		return wire.AddMember(schema, "properties", []byte(`{"`+memberName+`":`+memberSchema+`}`)), true
	case !properties.IsObject() || properties.Get(memberName).Exists():
		return wire.Splice{}, false
	}
	return wire.AddMember(properties, memberName, []byte(memberSchema)), true
}

type memberKey struct{}

// addMember adds the text to structuredContent: before its other members, or before the text
// that another layer has already added to this reply.
func addMember(call *middleware.Call, r Response, reply *wire.Message, text string) (quoted []byte, err error) {
	into := r.Get(reply, "structuredContent")
	if earlier := into.Get(memberName); earlier.Exists() {
		quoted = wire.Quote(text + "\n\n" + earlier.Text())
		return quoted, reply.Apply(wire.Splice{Off: earlier.Off, Len: len(earlier.Raw), Text: quoted})
	}
	quoted = wire.Quote(text)
	member := append([]byte(`"`+memberName+`":`), quoted...)
	for range into.Members() {
		member = append(member, ',')
		break
	}
	call.Mark(memberKey{})
	return quoted, reply.Apply(wire.Splice{Off: into.Off + 1, Text: member})
}

// A Carrier is the part of a result that carries a text.
type Carrier uint8

const (
	// InBlock adds the text as a block of content.
	InBlock Carrier = iota
	// InMember adds the text as a member of structuredContent.
	InMember
	// InsteadOf adds the text as a block of content and removes structuredContent.
	InsteadOf
)

// Unseen is the reason why the model may not see the text of a plan.
const Unseen = "the client may show structuredContent alone"

// A Plan is the way to add a text to a result. Seen reports whether the client shows it there.
type Plan struct {
	How  Carrier
	Seen bool
}

// Plan returns the plan for adding a text to a reply.
func (k *Memory) Plan(call *middleware.Call, way Structured, catalog *middleware.Catalog, r Response, reply *wire.Message) Plan {
	structured := r.Get(reply, "structuredContent")
	if !structured.Exists() || structured.IsNull() || isError(r, reply) {
		return Plan{InBlock, true}
	}
	client := ClientOf(r.client)
	switch {
	case way == Member || way == Auto && client.StructuredAlone:
		free := !structured.Get(memberName).Exists() || call.Marked(memberKey{})
		if k.hasMember(r.Tool) && structured.IsObject() && free {
			return Plan{InMember, true}
		}
	case way == TextOnly:
		if t, _ := catalog.Tool(r.Tool); t != nil && t.Passed && t.OutputSchema == nil {
			return Plan{InsteadOf, true}
		}
	}
	// With auto, an unknown client is assumed to show the block.
	return Plan{InBlock, client.Content || way == Auto && !client.StructuredAlone}
}

// A Text is a text that a layer adds to a result.
type Text struct {
	Text string
	Meta []byte // the _meta of its block, raw JSON
	// These are for the note about the edit. Why is the reason for adding the text to this
	// result.
	Layer, Rule, Why, Source string
}

// Put adds the text to the reply as planned. protocol is the revision in use.
func (p Plan) Put(call *middleware.Call, r Response, reply *wire.Message, t Text, protocol string) error {
	if p.How == InMember {
		quoted, err := addMember(call, r, reply, t.Text)
		if err == nil {
			t.note(call, "the client shows the model nothing but structuredContent of a result that has it", nil, quoted, r.Path("structuredContent", memberName))
		}
		return err
	}
	added := t.block(protocol)
	if err := reply.Prepend(added, r.Path("content")...); err != nil {
		return err
	}
	t.note(call, t.Why, nil, added, r.Path("content", "0"))
	if p.How != InsteadOf {
		return nil
	}
	before := r.Get(reply, "structuredContent").Raw
	if err := reply.Delete(r.Path("structuredContent")...); err != nil {
		return err
	}
	t.note(call, "some clients show the model nothing else of a result that has it", before, nil, r.Path("structuredContent"))
	return nil
}

// InResult reports whether the result already contains the text, as the member or as the first
// block. It compares the text instead of looking for a marker, which a server could write.
func InResult(r Response, reply *wire.Message, text string) (member, block bool) {
	for e := range r.Get(reply, "content").Elements() {
		block = e.Get("text").Equals(text)
		break
	}
	return r.Get(reply, "structuredContent", memberName).Equals(text), block
}

func (t Text) note(call *middleware.Call, why string, before, after []byte, path []string) {
	source := t.Source
	if after == nil {
		source = ""
	}
	call.Note(middleware.Note{Layer: t.Layer, Rule: t.Rule, Act: middleware.Edited, Why: why, Path: path, Before: before, After: after, Source: source})
}

// block returns the content block for a revision of the protocol: annotations were added
// in 2025-03-26, the _meta of blocks in 2025-06-18. An unknown revision ("") is treated as
// the newest.
func (t Text) block(revision string) []byte {
	out := append([]byte(`{"type":"text","text":`), wire.Quote(t.Text)...)
	if revision == "" || revision >= "2025-03-26" {
		out = append(out, `,"annotations":{"audience":["assistant"],"priority":1}`...)
	}
	if revision == "" || revision >= "2025-06-18" {
		out = append(append(out, `,"_meta":`...), t.Meta...)
	}
	return append(out, '}')
}
