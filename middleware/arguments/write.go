package arguments

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// write writes the values to the call. A fill that fails is skipped; a pin that fails refuses
// the call.
func (c *Conn) write(tc *toolCall, intents []intent, round uint64) *refusal {
	if c.overlap {
		slices.SortStableFunc(intents, compareForWriting)
	}
	// One edit moves the rest of the frame once, however many values there are.
	// If it fails, every intent gets its own edit, and its own error.
	written := c.writeAll(tc, intents)
	var values map[int]string
	for i := range intents {
		in := &intents[i]
		if in.value.empty() {
			continue
		}
		raw := in.value.json()
		if err := c.set(tc, in, raw, written); err != nil {
			if in.rule.enforces() {
				return in.rule.refusal("the value could not be written: "+err.Error(),
					"is not the model's to choose, and this call has no place to set it: leave it and what is around it out, or give an object where one belongs, and call again.")
			}
			c.log.WarnContext(tc.call.LogContext(), "an argument could not be filled; the call passes as it came", "argument", in.rule.path, "err", err)
			tc.call.Note(middleware.Note{Layer: layerName, Rule: in.rule.Name, Act: middleware.Failed, Why: err.Error(), Path: in.rule.keys})
			continue
		}
		if round != 0 {
			if values == nil {
				values = map[int]string{}
			}
			values[in.rule.index] = string(raw)
		}
	}
	if values != nil && len(tc.m.Name().Raw) <= maxEventTool { // the hook keeps the name
		tc.call.OnReply(c.rounds.hook(tc.view, bytes.Clone(tc.m.Name().Raw), round, values))
	}
	return nil
}

// writeAll writes all values in one edit. It reports false if that is impossible, for example
// because a value belongs inside an object. The message is then unchanged, and the values must
// be written one by one.
func (c *Conn) writeAll(tc *toolCall, intents []intent) bool {
	if c.overlap {
		return false
	}
	// Where a member can be added; follows says that one is before it.
	tail, follows := wire.Tail(tc.m.Arguments())
	c.splices, c.added = c.splices[:0], c.added[:0]
	for i := range intents {
		in := &intents[i]
		switch {
		case in.value.empty():
		// What is around the argument may be missing, null, or no object: see memberToSet.
		case len(in.rule.Argument) > 1:
			return false
		case !in.callValue.Exists():
			text := c.member(in)
			// The object has no member yet, so its first one follows no comma.
			if !follows {
				text, follows = text[1:], true
			}
			c.splices = append(c.splices, wire.Splice{Off: tail, Text: text})
		case !bytes.Equal(in.value.json(), in.callValue.Raw):
			c.splices = append(c.splices, wire.Splice{Off: in.callValue.Off, Len: len(in.callValue.Raw), Text: in.value.json()})
		}
	}
	// If all values together are too large (ErrTooLarge), some may still fit one by one.
	return tc.m.Apply(c.splices...) == nil
}

// member returns the argument as it is added after other members.
func (c *Conn) member(in *intent) []byte {
	// A value of a round before is computed JSON, also if the rule has a fact.
	if in.value.raw == nil {
		return in.value.member.text
	}
	start := len(c.added) // if append has to move the bytes, texts returned before keep the old ones
	c.added = append(in.rule.appendName(c.added), in.value.raw...)
	return c.added[start:]
}

// compareForWriting orders intents whose arguments may contain each other: pins last, so that
// nothing is filled into a pinned value, and outer arguments before inner ones, so that both are
// written.
func compareForWriting(x, y intent) int {
	return cmp.Or(cmp.Compare(rank(x.rule), rank(y.rule)), cmp.Compare(len(x.rule.Argument), len(y.rule.Argument)))
}

// set writes one value, unless written reports that writeAll has done so, and logs it. It does
// nothing if the call already has the value.
func (c *Conn) set(tc *toolCall, in *intent, raw []byte, written bool) error {
	// With overlap, a rule may have changed the value since it was read.
	if !c.overlap && bytes.Equal(raw, in.callValue.Raw) { // equal bytes, so that all parsers read the same
		tc.skip(in.rule, "the call has this value already")
		tc.addNotes()
		return nil
	}
	if !written {
		keys, text, err := in.rule.memberToSet(tc.m.Arguments(), raw)
		if err == nil {
			err = tc.m.Set(text, keys...)
		}
		if err != nil {
			return err
		}
	}
	why := "the call lacked it"
	if in.callValue.Exists() && in.rule.enforces() {
		why = "the call's own value was overwritten"
		c.logDifference(tc, in, why)
	} else {
		c.logEdit(tc, in)
	}
	if tc.call.Noted() {
		tc.call.Note(middleware.Note{Layer: layerName, Rule: in.rule.Name, Act: middleware.Edited, Why: why, Pinned: in.rule.enforces(),
			Path: in.rule.keys, Before: in.callValue.Raw, After: raw, Source: in.source()})
	}
	return nil
}

// memberToSet returns the member to set so that the argument has the value raw, and the value
// for the member. An outer object that is null counts as missing; if it is anything else but an
// object, the error is wire.ErrShape.
func (r *rule) memberToSet(args wire.Value, raw []byte) (keys []string, text []byte, err error) {
	for i, key := range r.Argument[:len(r.Argument)-1] {
		args = args.Get(key)
		switch {
		case !args.Exists():
			return r.keys, raw, nil
		case args.IsNull():
			return r.keys[:len(r.keys)-len(r.Argument)+i+1], wire.Nest(raw, r.Argument[i+1:]), nil
		case !args.IsObject():
			return nil, nil, wire.ErrShape
		}
	}
	return r.keys, raw, nil
}

// logEdit logs that an argument was filled or pinned, at info the first time for each tool and
// rule, so that a wrong edit is noticed.
func (c *Conn) logEdit(tc *toolCall, in *intent) {
	verb := "filled"
	if in.rule.enforces() {
		verb = "pinned"
	}
	level := c.level(event{verb, tc.name, in.rule})
	if c.log.Enabled(context.Background(), level) { // avoid building the text
		c.log.Log(tc.call.LogContext(), level, verb+" "+in.rule.path+" of "+middleware.Clip(tc.name)+" from "+in.origin())
	}
}
