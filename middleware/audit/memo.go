package audit

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
)

// A memo keeps the members of notes as records have them. A rule does the same to most
// calls; to write its note again, with a digest, costs a tenth of a call (BenchmarkChain).
type memo struct {
	mu    sync.Mutex
	known []knownNote
}

type knownNote struct {
	note    middleware.Note
	members record
}

const (
	maxKnown     = 64  // notes
	maxKnownNote = 512 // bytes of one
)

// members returns the members of a note, nil if they are not known. They never change.
func (m *memo) members(n *middleware.Note) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(n); i >= 0 && same(&m.known[i].note, n) {
		return m.known[i].members
	}
	return nil
}

// keep keeps the members of a note. A value from the client is seldom the same twice,
// so a note of one is not kept.
func (m *memo) keep(n *middleware.Note, members record) {
	if n.Before != nil || len(n.After)+len(members) > maxKnownNote {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := knownNote{cloneNote(n), slices.Clone(members)}
	if i := m.index(n); i >= 0 {
		m.known[i] = k
	} else if len(m.known) < maxKnown {
		m.known = append(m.known, k)
	}
}

// index returns the index of the note of the same rule and member, or -1.
func (m *memo) index(n *middleware.Note) int {
	for i := range m.known {
		if k := &m.known[i].note; k.Rule == n.Rule && k.Act == n.Act && slices.Equal(k.Path, n.Path) {
			return i
		}
	}
	return -1
}

// same reports whether two notes of one rule have the same members in a record.
func same(a, b *middleware.Note) bool {
	return b.Before == nil && a.Layer == b.Layer && a.Why == b.Why && a.Source == b.Source &&
		(a.After == nil) == (b.After == nil) && bytes.Equal(a.After, b.After)
}

// cloneNote returns a note that shares nothing with the frame.
func cloneNote(n *middleware.Note) middleware.Note {
	c := *n
	c.Rule, c.Why, c.Source = strings.Clone(n.Rule), strings.Clone(n.Why), strings.Clone(n.Source)
	c.After, c.Path = bytes.Clone(n.After), slices.Clone(n.Path)
	for i := range c.Path {
		c.Path[i] = strings.Clone(c.Path[i])
	}
	return c
}
