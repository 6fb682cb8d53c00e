package revive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Pages has the digests of the lists that a server gave, by the method that asks for
// them (R11). The zero value is empty.
type Pages map[string]*pages

type pages struct {
	sum    hash.Hash // of the pages of the list that is being read
	next   []byte    // the cursor of its next page, nil if it is whole
	digest []byte    // of the last whole list
}

// member returns where the entries of a list stand.
func member(method string) string {
	if method == "resources/templates/list" {
		return "resourceTemplates"
	}
	name, _, _ := strings.Cut(method, "/")
	return name
}

// Page takes a page of a list, which was asked for with a cursor, nil for the first. It
// returns the cursor of the page that follows, nil if there is none.
func (p *Pages) Page(method string, cursor []byte, reply *wire.Message) (next []byte) {
	if *p == nil {
		*p = Pages{}
	}
	l := (*p)[method]
	if l == nil {
		l = &pages{}
		(*p)[method] = l
	}
	entries := reply.Get("result", member(method))
	if v := reply.Get("result", "nextCursor"); v.IsString() {
		next = bytes.Clone(v.Raw)
	}
	switch {
	case !reply.Plain() || !entries.IsArray():
		l.sum = nil
		return nil
	case cursor == nil:
		l.sum = sha256.New()
	case l.sum == nil || !bytes.Equal(cursor, l.next):
		l.sum = nil // pages of two lists, of which neither is known
		return next
	}
	for e := range entries.Elements() {
		l.sum.Write(e.Raw)
		l.sum.Write([]byte{44})
	}
	if l.next = next; next == nil {
		l.digest, l.sum = l.sum.Sum(nil), nil
	}
	return next
}

// Methods returns the methods whose lists are known whole.
func (p Pages) Methods() (all []string) {
	for method, l := range p {
		if l.digest != nil {
			all = append(all, method)
		}
	}
	slices.Sort(all)
	return all
}

// Digest returns the digest of the last whole list, nil if there is none.
func (p Pages) Digest(method string) []byte {
	if l := p[method]; l != nil {
		return l.digest
	}
	return nil
}

// Lists returns the methods whose lists a new server is asked for, to compare them. These are
// the lists that the client has read: no other can have changed for it (R11).
func (r *Record) Lists() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists.Methods()
}

// ListParams returns the params to ask for a page of a list with.
func (r *Record) ListParams(cursor []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var members [][]byte
	if r.meta != nil {
		members = append(members, append([]byte(`"_meta":`), r.meta...))
	}
	if cursor != nil {
		members = append(members, append([]byte(`"cursor":`), cursor...))
	}
	return slices.Concat([]byte{'{'}, bytes.Join(members, []byte{','}), []byte{'}'})
}

// A change is that of a list: the method that asks for it, and the digests of the two.
type change struct{ method, before, after string }

// Compare takes the lists of a new server and returns those that have another content than
// before.
func (r *Record) Compare(now Pages) (changes []change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, method := range now.Methods() {
		before, after := r.lists.Digest(method), now.Digest(method)
		if !bytes.Equal(before, after) {
			changes = append(changes, change{method, digestText(before), digestText(after)})
		}
		r.lists[method] = now[method]
	}
	return changes
}

func digestText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
