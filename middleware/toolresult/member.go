package toolresult

import (
	"strings"

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
	if call.Value(extendedKey{}) != nil {
		return nil
	}
	call.SetValue(extendedKey{}, true)
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
		name := strings.Clone(entry.Get("name").Text())
		schema := entry.Get("outputSchema")
		splice, ok := memberSplice(schema)
		if ok {
			splices = append(splices, splice)
		}
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
	call.SetValue(memberKey{}, true)
	return quoted, reply.Apply(wire.Splice{Off: into.Off + 1, Text: member})
}
