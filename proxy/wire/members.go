package wire

import "github.com/attache-mcp/attache/proxy/wire/internal/skip"

// RemoveMembers returns the splices that remove the members of obj for which
// drop is true, each with one comma. They do not overlap.
func RemoveMembers(obj Value, drop func(Member) bool) (out []Splice) {
	keptEnd := -1
	for m := range obj.Members() {
		out, keptEnd = removeEntry(out, obj, m.Key.Off, m.Value, keptEnd, drop(m))
	}
	return out
}

// RemoveElements returns the splices that remove the elements of arr for which
// drop is true, each with one comma. They do not overlap.
func RemoveElements(arr Value, drop func(Value) bool) (out []Splice) {
	keptEnd := -1
	for e := range arr.Elements() {
		out, keptEnd = removeEntry(out, arr, e.Off, e, keptEnd, drop(e))
	}
	return out
}

// removeEntry adds the removal of the entry of in that begins at off and ends with last, if drop is true: with
// the comma before it if an earlier entry is kept, else with the comma after it. keptEnd is the end of the last
// entry before it that is kept, -1 for none. removeEntry returns that of the next entry.
func removeEntry(out []Splice, in Value, off int, last Value, keptEnd int, drop bool) ([]Splice, int) {
	start, end := off-in.Off, last.Off-in.Off+len(last.Raw)
	switch {
	case !drop:
		return out, end
	case keptEnd >= 0:
		start = keptEnd
	default:
		if next := skip.Space(in.Raw, end); next < len(in.Raw) && in.Raw[next] == ',' {
			end = skip.Space(in.Raw, next+1)
		}
	}
	// If its neighbour is removed after the same kept entry, the two removals must not overlap.
	if n := len(out); n > 0 {
		start = max(start, out[n-1].Off+out[n-1].Len-in.Off)
	}
	return append(out, Splice{Off: in.Off + start, Len: end - start}), keptEnd
}

// Delete removes the member at the path keys from the root, with one comma. It is not
// an error if there is none.
func (m *Message) Delete(keys ...string) error {
	if len(keys) == 0 {
		return ErrShape
	}
	last := len(keys) - 1
	return m.Apply(RemoveMembers(m.Get(keys[:last]...), func(member Member) bool { return member.Key.Equals(keys[last]) })...)
}
