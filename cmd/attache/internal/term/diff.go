package term

import (
	"bytes"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A diffOp says on which sides of attache a part of a frame stands.
type diffOp byte

const (
	demoSame diffOp = ' ' // on both
	removed  diffOp = '-' // only before attache
	added    diffOp = '+' // only behind it
)

// A node is a part of a frame, in the frame's own bytes.
type node struct {
	op diffOp
	// lead stands in front of text: a comma that only one side has, and the
	// member's key with its colon.
	lead string
	// text is the part as it is on the wire, its opening bracket alone if there
	// are items.
	text string
	// items are the members or elements of which some differ.
	items []node
	// tail stands behind: a closing bracket, the comma to the next part.
	tail string
}

// key returns the key of a member with its colon, "" for an element.
func (n node) key() string { return strings.TrimPrefix(n.lead, ",") }

// Diff compares a frame before and after attache, member by member. The nodes that are not
// demoAdded make up before, and those that are not demoRemoved make up after.
func Diff(before, after []byte) []node {
	return merge("", wire.Value{Raw: before}, wire.Value{Raw: after})
}

func merge(lead string, before, after wire.Value) []node {
	switch {
	case bytes.Equal(before.Raw, after.Raw):
		return []node{{op: demoSame, lead: lead, text: string(before.Raw)}}
	case before.IsObject() && after.IsObject(), before.IsArray() && after.IsArray():
		open, end := before.Raw[0], before.Raw[len(before.Raw)-1]
		return []node{{op: demoSame, lead: lead, text: string(open), items: mergeItems(before, after), tail: string(end)}}
	}
	return []node{
		{op: removed, lead: lead, text: string(before.Raw)},
		{op: added, lead: lead, text: string(after.Raw)},
	}
}

// A diffItem is a member with its key, or an element without.
type diffItem struct {
	lead  string
	value wire.Value
}

// diffItems returns the members of an object or the elements of an array.
func diffItems(v wire.Value) []diffItem {
	var items []diffItem
	for m := range v.Members() {
		items = append(items, diffItem{string(m.Key.Raw) + ":", m.Value})
	}
	for e := range v.Elements() {
		items = append(items, diffItem{"", e})
	}
	return items
}

// same reports whether the two are one member, or equal elements.
func (i diffItem) same(o diffItem) bool {
	return i.lead == o.lead && (i.lead != "" || bytes.Equal(i.value.Raw, o.value.Raw))
}

// mergeItems pairs the items of two values. Elements that neither side has
// otherwise are taken for one element that was edited.
func mergeItems(before, after wire.Value) []node {
	var nodes []node
	b, a := diffItems(before), diffItems(after)
	for len(b) > 0 || len(a) > 0 {
		stays := len(b) > 0 && slices.ContainsFunc(a, b[0].same)
		isNew := len(a) > 0 && !slices.ContainsFunc(b, a[0].same)
		switch {
		case len(b) > 0 && len(a) > 0 && (b[0].same(a[0]) || !stays && isNew && b[0].lead == a[0].lead):
			nodes = append(nodes, merge(b[0].lead, b[0].value, a[0].value)...)
			b, a = b[1:], a[1:]
		case len(b) > 0 && !stays:
			nodes = append(nodes, node{op: removed, lead: b[0].lead, text: string(b[0].value.Raw)})
			b = b[1:]
		default:
			nodes = append(nodes, node{op: added, lead: a[0].lead, text: string(a[0].value.Raw)})
			a = a[1:]
		}
	}
	addCommas(nodes)
	return nodes
}

// addCommas puts the commas between nodes: behind a node, as people write them,
// or, where only one side has a comma, in front of what that side has next.
func addCommas(nodes []node) {
	owed := map[diffOp]string{}
	for i := range nodes {
		n := &nodes[i]
		n.lead = owed[n.op] + n.lead
		delete(owed, n.op)
		rest := nodes[i+1:]
		before := slices.ContainsFunc(rest, func(n node) bool { return n.op != added })
		after := slices.ContainsFunc(rest, func(n node) bool { return n.op != removed })
		switch {
		case n.op == removed && before, n.op == added && after, n.op == demoSame && before && after:
			n.tail += ","
		case n.op == demoSame && before:
			owed[removed] = ","
		case n.op == demoSame && after:
			owed[added] = ","
		}
	}
}
