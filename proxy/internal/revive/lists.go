package revive

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Pages has the digests of the lists that a server returned, by method (R11). The zero
// value is empty.
type Pages map[string]*pages

type pages struct {
	sum    hash.Hash // of the pages read so far, nil if no list is being read
	next   []byte    // the cursor of the next page, nil after the last one
	digest []byte    // of the last complete list, nil if there is none
}

// member returns the member of a result that contains the entries of a list.
func member(method string) string {
	if method == "resources/templates/list" {
		return "resourceTemplates"
	}
	name, _, _ := strings.Cut(method, "/")
	return name
}

// Page adds a page of a list. cursor is that of the request, nil for the first page. It
// returns the cursor of the next page, nil if there is none.
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
	// Some servers write an empty cursor on the last page.
	if v := reply.Get("result", "nextCursor"); v.IsString() && !v.Equals("") {
		next = bytes.Clone(v.Raw)
	}
	switch {
	// The last complete list stays, also if this one is never completed.
	case !reply.Plain() || !entries.IsArray():
		l.sum = nil
		return nil
	case cursor == nil:
		l.sum = sha256.New()
	case l.sum == nil || !bytes.Equal(cursor, l.next):
		l.sum = nil // this page does not follow the last one, so the digest would be of no list
		return next
	}
	for e := range entries.Elements() {
		l.sum.Write(e.Raw)
		l.sum.Write([]byte{','}) // the division into pages does not matter
	}
	if l.next = next; next == nil {
		l.digest, l.sum = l.sum.Sum(nil), nil
	}
	return next
}

// Methods returns the methods whose complete lists are known, sorted.
func (p Pages) Methods() (all []string) {
	for method, l := range p {
		if l.digest != nil {
			all = append(all, method)
		}
	}
	slices.Sort(all)
	return all
}

// Lists returns the methods of the lists that are requested from a new server and compared.
// These are the lists that the client has read: no other can have changed for it (R11).
func (r *Record) Lists() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists.Methods()
}

// ListParams returns the params of the request for a page of a list.
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

// A change is a list that has changed, with the digests before and after.
type change struct{ method, before, after string }

// Compare returns the lists of a new server that differ from those of the last one, and
// records them.
func (r *Record) Compare(now Pages) (changes []change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, method := range now.Methods() { // which Lists returned
		before, after := r.lists[method].digest, now[method].digest
		if !bytes.Equal(before, after) {
			changes = append(changes, change{method, fmt.Sprintf("sha256:%x", before), fmt.Sprintf("sha256:%x", after)})
		}
		r.lists[method] = now[method]
	}
	return changes
}
