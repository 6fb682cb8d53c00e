package audit

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/attache-mcp/attache/middleware"
)

// A memo holds notes as records have them. What a rule does to one call it does to
// most: the same decision for the same reason, the same value where there was none.
// So few are held that looking at one after the other costs less than a hash of what
// tells them apart, and who looks needs no lock: what is held is never changed.
type memo struct {
	known atomic.Pointer[[]*written]
}

// written is a note, and the members of its object in a record.
type written struct {
	note middleware.Note
	text record
}

const (
	// maxMemo is how long the texts of a note may be to be remembered, in bytes.
	maxMemo = 1 << 10
	// memoSize is how many notes are remembered.
	memoSize = 64
)

// all returns what is remembered.
func (m *memo) all() []*written {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return nil
}

// text returns the members of a note, which are never changed; ok is false if they are
// not known.
func (m *memo) text(n *middleware.Note) (_ record, ok bool) {
	if n.Before != nil {
		return nil, false
	}
	for _, w := range m.all() {
		if alike(&w.note, n) && same(&w.note, n) {
			return w.text, true
		}
	}
	return nil, false
}

// alike reports whether two notes are of one rule, act and member: of these one is
// remembered, since a value that differs from call to call would drive out all others.
func alike(a, b *middleware.Note) bool {
	return a.Rule == b.Rule && a.Act == b.Act && member(a) == member(b)
}

// member is the last of the path.
func member(n *middleware.Note) string {
	if len(n.Path) == 0 {
		return ""
	}
	return n.Path[len(n.Path)-1]
}

// same reports whether two notes that are alike, of edits where nothing was before,
// read the same in a record.
func same(a, b *middleware.Note) bool {
	return a.Layer == b.Layer && a.Why == b.Why && a.Source == b.Source &&
		(a.After == nil) == (b.After == nil) && bytes.Equal(a.After, b.After) && slices.Equal(a.Path, b.Path)
}

// keep remembers what was written of a note. What was there before an edit is the
// client's, and seldom the same twice. Of two that are kept at a time one may be
// forgotten.
func (m *memo) keep(n *middleware.Note, text record) {
	size := len(n.Why) + len(n.Source) + len(n.After)
	for _, key := range n.Path {
		size += len(key)
	}
	if n.Before != nil || size > maxMemo {
		return
	}
	known := m.all()
	if len(known) >= memoSize {
		known = nil
	}
	w := &written{note: copied(n), text: slices.Clone(text)}
	known = append(slices.DeleteFunc(slices.Clone(known), func(o *written) bool { return alike(&o.note, n) }), w)
	m.known.Store(&known)
}

// copied returns a note that shares nothing with the frame it tells of.
func copied(n *middleware.Note) middleware.Note {
	c := *n
	c.Rule, c.Why, c.Source = strings.Clone(n.Rule), strings.Clone(n.Why), strings.Clone(n.Source)
	c.After, c.Path = bytes.Clone(n.After), slices.Clone(n.Path)
	for i := range c.Path {
		c.Path[i] = strings.Clone(c.Path[i])
	}
	return c
}
