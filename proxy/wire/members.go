package wire

// RemoveMember returns the splice that removes a member of obj with one comma;
// ok is false if it is not there.
func RemoveMember(obj Value, key string) (s Splice, ok bool) {
	prevEnd := -1
	for i := obj.open('{'); ; {
		k, v, next, more := obj.nextMember(i)
		if !more {
			return Splice{}, false
		}
		if stringIs(k.Raw, key) {
			end := v.Off - obj.Off + len(v.Raw)
			return removal(obj, prevEnd, k.Off-obj.Off, end), true
		}
		prevEnd, i = next, next
	}
}

// RemoveMembers returns the splices that remove the members of obj for which
// drop is true, each with one comma. They do not overlap.
func RemoveMembers(obj Value, drop func(Member) bool) []Splice {
	var out []Splice
	keptEnd := -1
	for m := range obj.Members() {
		start := m.Key.Off - obj.Off
		end := m.Value.Off - obj.Off + len(m.Value.Raw)
		if !drop(m) {
			keptEnd = end
			continue
		}
		out = appendRemoval(out, removal(obj, keptEnd, start, end))
	}
	return out
}

// RemoveElements returns the splices that remove the elements of arr for which
// drop is true, each with one comma. They do not overlap.
func RemoveElements(arr Value, drop func(Value) bool) []Splice {
	var out []Splice
	keptEnd := -1
	for e := range arr.Elements() {
		start := e.Off - arr.Off
		end := start + len(e.Raw)
		if !drop(e) {
			keptEnd = end
			continue
		}
		out = appendRemoval(out, removal(arr, keptEnd, start, end))
	}
	return out
}

// removal removes the entry [start, end) of a container, with the comma behind
// it, or before it when one before it stays. keptEnd is the end of the last
// entry before it that stays, -1 for none.
func removal(in Value, keptEnd, start, end int) Splice {
	if keptEnd >= 0 {
		return Splice{Off: in.Off + keptEnd, Len: end - keptEnd}
	}
	if next := skipSpace(in.Raw, end); next < len(in.Raw) && in.Raw[next] == ',' {
		end = skipSpace(in.Raw, next+1)
	}
	return Splice{Off: in.Off + start, Len: end - start}
}

// appendRemoval adds s behind the removals so far. Where neighbours go that hang
// on the same entry before them, each takes its part.
func appendRemoval(out []Splice, s Splice) []Splice {
	if n := len(out); n > 0 {
		if last := out[n-1].Off + out[n-1].Len; s.Off < last {
			s.Len -= last - s.Off
			s.Off = last
		}
	}
	return append(out, s)
}
