package wire

import (
	"unicode"
	"unicode/utf8"
)

var slotNames = [slots]string{"", "jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "_meta"}

// setSlot says where the place of c's member of that name goes.
func (s *Scanner) setSlot(c *container, name []byte) {
	c.slot = s.named(c, name)
	if c.slot == slotID {
		s.m.ids++
	}
}

// named returns the slot of the member called name, and flags a name that a
// lenient reader could take for one that matters here.
func (s *Scanner) named(c *container, name []byte) slot {
	switch c.role {
	case roleTop:
		if found := topSlot(name); found != slotNone {
			return found
		}
		s.flagTwin(name, slotNames[slotVersion:slotError+1])
	case roleParams:
		if found := paramsSlot(name); found != slotNone {
			return found
		}
		s.flagTwin(name, slotNames[slotName:slotMeta+1])
	case roleArguments:
		if int(c.level) < len(s.ArgumentNames) {
			s.flagTwin(name, s.ArgumentNames[c.level])
		}
	}
	return slotNone
}

// topSlot returns the slot of a top-level member.
func topSlot(name []byte) slot {
	switch string(name) {
	case "jsonrpc":
		return slotVersion
	case "id":
		return slotID
	case "method":
		return slotMethod
	case "params":
		return slotParams
	case "result":
		return slotResult
	case "error":
		return slotError
	}
	return slotNone
}

// paramsSlot returns the slot of a member of params.
func paramsSlot(name []byte) slot {
	switch string(name) {
	case "name":
		return slotName
	case "arguments":
		return slotArguments
	case "_meta":
		return slotMeta
	}
	return slotNone
}

// flagTwin flags name if it is not one of known, but a lenient reader could
// take it for one.
func (s *Scanner) flagTwin(name []byte, known []string) {
	for _, k := range known {
		if string(name) != k && Alike(name, k) {
			s.flag(TwinKey)
		}
	}
}

// Alike reports whether name, as it reads after unescaping, equals known but for
// letter case and NULs: then some reader takes the one for the other.
func Alike(name []byte, known string) bool {
	for _, k := range known {
		for len(name) > 0 && name[0] == 0 {
			name = name[1:]
		}
		r, n := utf8.DecodeRune(name)
		if n == 0 || fold(r) != fold(k) {
			return false
		}
		name = name[n:]
	}
	for _, c := range name {
		if c != 0 {
			return false
		}
	}
	return true
}

// Mentions reports whether some reader could find name in frame, escaped or [Alike].
// It is for a frame that cannot be taken apart, and need not be JSON: the name may
// stand anywhere.
func Mentions(frame []byte, name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	first = fold(first)
	for i, c := range frame {
		if (c >= utf8.RuneSelf || c == '\\' || fold(rune(c)) == first) && begins(frame[i:], name) {
			return true
		}
	}
	return false
}

// begins reports whether in begins with name, escaped or alike. NULs in front of it
// do not count, so that a long row of them is not read once for each.
func begins(in []byte, name string) bool {
	for at, k := range name {
		r, n := nextRune(in)
		for at > 0 && r == 0 && n > 0 {
			in = in[n:]
			r, n = nextRune(in)
		}
		if n == 0 || fold(r) != fold(k) {
			return false
		}
		in = in[n:]
	}
	return true
}

// nextRune reads one rune of the inside of a JSON string, and how many bytes it has.
// The short escapes of control characters are read as letters.
func nextRune(in []byte) (r rune, n int) {
	if len(in) < 2 || in[0] != '\\' {
		return utf8.DecodeRune(in)
	}
	if in[1] == 'u' {
		r, n = unescapeRune(in[2:])
		return r, 2 + n
	}
	return rune(in[1]), 2
}

// fold returns one rune for all those that some reader takes for the same
// letter: Go's encoding/json folds as [unicode.SimpleFold] does, Java's
// equalsIgnoreCase also takes a dotless or a dotted capital i for an i.
func fold(r rune) rune {
	switch {
	case r == 'ı' || r == 'İ':
		return 'i'
	case r >= utf8.RuneSelf:
		first := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			first = min(first, next)
		}
		r = first
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}
