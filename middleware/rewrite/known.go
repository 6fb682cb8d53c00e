package rewrite

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// maxKnown is of how many tools the annotations are kept.
	maxKnown = 10_000
	// maxAnnotations is how long annotations may be, in bytes; longer ones are none.
	maxAnnotations = 4 << 10
)

// known is what lists of tools have told: the annotations of tools, and which of
// the names that rules give and take the server has.
type known struct {
	named []string // the names in rules that rename; not written after New

	mu    sync.Mutex
	tools map[string]tool
	list  int  // counts the lists that were begun
	whole bool // all pages of the list have passed so far
}

type tool struct {
	annotations []byte
	list        int // in which it was seen last
}

// learn takes a page of the client's list. Tools that a whole list no longer has
// are forgotten with its last page.
func (k *known) learn(entries wire.Value, first, last, annotations bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if first {
		k.list++
		k.whole = true
	}
	for entry := range entries.Elements() {
		name := entry.Get("name")
		if !name.IsString() || !annotations && !k.names(name.View()) {
			continue
		}
		k.add(name.View(), annotationsOf(entry))
	}
	if last && k.whole {
		k.whole = false
		for name, t := range k.tools {
			if t.list != k.list {
				delete(k.tools, name)
			}
		}
	}
}

// add remembers one tool. When there are too many, those go that no rule names.
func (k *known) add(name string, annotations []byte) {
	if _, again := k.tools[name]; !again && len(k.tools) >= maxKnown {
		for old := range k.tools {
			if !k.names(old) {
				delete(k.tools, old)
			}
		}
	}
	k.tools[strings.Clone(name)] = tool{bytes.Clone(annotations), k.list}
}

// annotationsOf returns the annotations an entry of the list declares.
func annotationsOf(entry wire.Value) []byte {
	a := entry.Get("annotations")
	if !a.IsObject() || len(a.Raw) > maxAnnotations {
		return nil
	}
	return a.Raw
}

func (k *known) annotations(name string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tools[name].annotations
}

// has reports whether the server has listed a tool that a rule renames, or whose
// name a rule gives to another.
func (k *known) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.tools[name]
	return ok
}

// names reports whether a rule renames a tool of that name, or gives the name.
func (k *known) names(name string) bool { return slices.Contains(k.named, name) }

// forget drops all: the server says that its tools changed.
func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.tools)
	k.whole = false
}
