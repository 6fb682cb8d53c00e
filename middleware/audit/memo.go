package audit

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
)

// A memo holds notes as records have them. What a rule does to one call it does to
// most: the same decision for the same reason, the same value where there was none.
type memo struct {
	mu    sync.Mutex
	known map[memoKey]*written
}

// A memoKey is what tells the notes of one configuration apart.
type memoKey struct {
	rule   string
	act    middleware.Act
	member string // the last of the path
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
	memoSize = 256
)

func keyOf(n *middleware.Note) memoKey {
	k := memoKey{rule: n.Rule, act: n.Act}
	if len(n.Path) > 0 {
		k.member = n.Path[len(n.Path)-1]
	}
	return k
}

// appendTo appends the members of a note; ok is false if they are not known.
func (m *memo) appendTo(r record, n *middleware.Note) (_ record, ok bool) {
	if n.Before != nil {
		return r, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.known[keyOf(n)]
	if w == nil || !same(&w.note, n) {
		return r, false
	}
	return append(r, w.text...), true
}

// same reports whether two notes with one key, of edits where nothing was before,
// read the same in a record.
func same(a, b *middleware.Note) bool {
	return a.Layer == b.Layer && a.Why == b.Why && a.Source == b.Source &&
		(a.After == nil) == (b.After == nil) && bytes.Equal(a.After, b.After) && slices.Equal(a.Path, b.Path)
}

// keep remembers what was written of a note. What was there before an edit is the
// client's, and seldom the same twice.
func (m *memo) keep(n *middleware.Note, text record) {
	size := len(n.Why) + len(n.Source) + len(n.After)
	for _, key := range n.Path {
		size += len(key)
	}
	if n.Before != nil || size > maxMemo {
		return
	}
	w := &written{note: copied(n), text: slices.Clone(text)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= memoSize {
		clear(m.known)
	}
	if m.known == nil {
		m.known = map[memoKey]*written{}
	}
	m.known[keyOf(&w.note)] = w
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
