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
		if string(name) != k && alike(name, k) {
			s.flag(TwinKey)
		}
	}
}

// alike reports whether name equals known but for letter case and NULs.
func alike(name []byte, known string) bool {
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
