package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A demoOp says on which sides of attache a part of a frame stands.
type demoOp byte

const (
	demoSame    demoOp = ' ' // on both
	demoRemoved demoOp = '-' // only before attache
	demoAdded   demoOp = '+' // only behind it
)

// A demoNode is a part of a frame, in the frame's own bytes.
type demoNode struct {
	op demoOp
	// lead stands in front of text: a comma that only one side has, and the
	// member's key with its colon.
	lead string
	// text is the part as it is on the wire, its opening bracket alone if there
	// are items.
	text string
	// items are the members or elements of which some differ.
	items []demoNode
	// tail stands behind: a closing bracket, the comma to the next part.
	tail string
}

// key returns the key of a member with its colon, "" for an element.
func (n demoNode) key() string { return strings.TrimPrefix(n.lead, ",") }

// demoDiff compares a frame before and after attache member by member. The texts
// of the nodes that are not demoAdded, one behind the other, are before; those of
// the nodes that are not demoRemoved are after.
func demoDiff(before, after []byte) []demoNode {
	return demoMerge("", wire.Value{Raw: before}, wire.Value{Raw: after})
}

func demoMerge(lead string, before, after wire.Value) []demoNode {
	switch {
	case bytes.Equal(before.Raw, after.Raw):
		return []demoNode{{op: demoSame, lead: lead, text: string(before.Raw)}}
	case before.IsObject() && after.IsObject(), before.IsArray() && after.IsArray():
		open, end := before.Raw[0], before.Raw[len(before.Raw)-1]
		return []demoNode{{op: demoSame, lead: lead, text: string(open), items: demoMergeItems(before, after), tail: string(end)}}
	}
	return []demoNode{
		{op: demoRemoved, lead: lead, text: string(before.Raw)},
		{op: demoAdded, lead: lead, text: string(after.Raw)},
	}
}

// A demoItem is a member with its key, or an element without.
type demoItem struct {
	lead  string
	value wire.Value
}

// demoItems returns the members of an object or the elements of an array.
func demoItems(v wire.Value) []demoItem {
	var items []demoItem
	for m := range v.Members() {
		items = append(items, demoItem{string(m.Key.Raw) + ":", m.Value})
	}
	for e := range v.Elements() {
		items = append(items, demoItem{"", e})
	}
	return items
}

// same reports whether the two are one member, or equal elements.
func (i demoItem) same(o demoItem) bool {
	return i.lead == o.lead && (i.lead != "" || bytes.Equal(i.value.Raw, o.value.Raw))
}

// demoMergeItems pairs the items of two values. Elements that neither side has
// otherwise are taken for one element that was edited.
func demoMergeItems(before, after wire.Value) []demoNode {
	var nodes []demoNode
	b, a := demoItems(before), demoItems(after)
	for len(b) > 0 || len(a) > 0 {
		stays := len(b) > 0 && slices.ContainsFunc(a, b[0].same)
		isNew := len(a) > 0 && !slices.ContainsFunc(b, a[0].same)
		switch {
		case len(b) > 0 && len(a) > 0 && (b[0].same(a[0]) || !stays && isNew && b[0].lead == a[0].lead):
			nodes = append(nodes, demoMerge(b[0].lead, b[0].value, a[0].value)...)
			b, a = b[1:], a[1:]
		case len(b) > 0 && !stays:
			nodes = append(nodes, demoNode{op: demoRemoved, lead: b[0].lead, text: string(b[0].value.Raw)})
			b = b[1:]
		default:
			nodes = append(nodes, demoNode{op: demoAdded, lead: a[0].lead, text: string(a[0].value.Raw)})
			a = a[1:]
		}
	}
	demoCommas(nodes)
	return nodes
}

// demoCommas puts the commas between nodes: behind a node, as people write them,
// or, where only one side has a comma, in front of what that side has next.
func demoCommas(nodes []demoNode) {
	owed := map[demoOp]string{}
	for i := range nodes {
		n := &nodes[i]
		n.lead = owed[n.op] + n.lead
		delete(owed, n.op)
		rest := nodes[i+1:]
		before := slices.ContainsFunc(rest, func(n demoNode) bool { return n.op != demoAdded })
		after := slices.ContainsFunc(rest, func(n demoNode) bool { return n.op != demoRemoved })
		switch {
		case n.op == demoRemoved && before, n.op == demoAdded && after, n.op == demoSame && before && after:
			n.tail += ","
		case n.op == demoSame && before:
			owed[demoRemoved] = ","
		case n.op == demoSame && after:
			owed[demoAdded] = ","
		}
	}
}
