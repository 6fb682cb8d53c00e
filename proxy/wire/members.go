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

// removeEntry adds the removal of the entry that begins at off and ends with last, if
// drop is true. It returns the end of the last entry that is kept.
func removeEntry(out []Splice, in Value, off int, last Value, keptEnd int, drop bool) ([]Splice, int) {
	end := last.Off - in.Off + len(last.Raw)
	if !drop {
		return out, end
	}
	return appendRemoval(out, removal(in, keptEnd, off-in.Off, end)), keptEnd
}

// removal returns the splice that removes the entry [start, end) of a container, with
// the comma before it if an earlier entry is kept, else with the comma after it. keptEnd
// is the end of the last entry before it that is kept, -1 for none.
func removal(in Value, keptEnd, start, end int) Splice {
	if keptEnd >= 0 {
		return Splice{Off: in.Off + keptEnd, Len: end - keptEnd}
	}
	if next := skip.Space(in.Raw, end); next < len(in.Raw) && in.Raw[next] == ',' {
		end = skip.Space(in.Raw, next+1)
	}
	return Splice{Off: in.Off + start, Len: end - start}
}

// appendRemoval appends s to the removals so far. If s overlaps the last of them, because
// neighbours after the same kept entry are removed, s is shortened.
func appendRemoval(out []Splice, s Splice) []Splice {
	if n := len(out); n > 0 {
		if last := out[n-1].Off + out[n-1].Len; s.Off < last {
			s.Len -= last - s.Off
			s.Off = last
		}
	}
	return append(out, s)
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
