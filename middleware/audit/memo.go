package audit

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/middleware"
)

// A memo caches the members that notes have in records. A rule usually adds the same note
// to every call, and writing that again, with a digest, costs a tenth of a call
// (BenchmarkChain).
type memo struct {
	mu    sync.Mutex
	items []memoItem
}

type memoItem struct {
	note    middleware.Note
	members record
}

const (
	maxMemoItems     = 64
	maxMemoItemBytes = 512
)

// members returns the members of a note, or nil. The caller must not change them.
func (m *memo) members(n *middleware.Note) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(n); i >= 0 && same(&m.items[i].note, n) {
		return m.items[i].members
	}
	return nil
}

// add adds the members of a note, unless it contains a value from the client, which is
// seldom the same twice.
func (m *memo) add(n *middleware.Note, members record) {
	if n.Before != nil || len(n.After)+len(members) > maxMemoItemBytes {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	item := memoItem{cloneNote(n), slices.Clone(members)}
	if i := m.index(n); i >= 0 {
		m.items[i] = item
	} else if len(m.items) < maxMemoItems {
		m.items = append(m.items, item)
	}
}

// index returns the index of the note with the same rule, act and path, or -1.
func (m *memo) index(n *middleware.Note) int {
	for i := range m.items {
		if k := &m.items[i].note; k.Rule == n.Rule && k.Act == n.Act && slices.Equal(k.Path, n.Path) {
			return i
		}
	}
	return -1
}

// same reports whether two notes with the same index have the same members in a record.
func same(a, b *middleware.Note) bool {
	return b.Before == nil && a.Layer == b.Layer && a.Why == b.Why && a.Source == b.Source &&
		(a.After == nil) == (b.After == nil) && bytes.Equal(a.After, b.After)
}

// cloneNote returns a copy that shares no memory with the frame.
func cloneNote(n *middleware.Note) middleware.Note {
	c := *n
	c.Rule, c.Why, c.Source = strings.Clone(n.Rule), strings.Clone(n.Why), strings.Clone(n.Source)
	c.After, c.Path = bytes.Clone(n.After), slices.Clone(n.Path)
	for i := range c.Path {
		c.Path[i] = strings.Clone(c.Path[i])
	}
	return c
}
