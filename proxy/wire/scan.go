package wire

import (
	"slices"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire/internal/lanes"
	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

// A Scanner scans client frames. It is iterative, so no frame can exhaust
// the stack, and allocates only while its own buffers grow. A Scanner is used
// by one goroutine; the zero value is ready.
type Scanner struct {
	// ArgumentNames lists, for each depth below params.arguments, the names that rules read or
	// write there, "[]" for the elements of lists. A member whose name is not one of them, but
	// [SameName] as one, makes a frame ambiguous.
	ArgumentNames [][]string

	m     *Message    // the message of the current Look, as b is its frame
	b     []byte      // the same bytes, which the scan never changes
	stack []container // stack[0] is the frame itself, stack[depth] the innermost container
	depth int         // how many containers are open
	names nameSet
}

// fewContainers is the initial size of a Scanner's stack.
const fewContainers = 16

type container struct {
	closer byte // '}', ']', or 0 for the frame
	role   role
	slot   slot   // the slot of the current member; slotNone between members, and in an array
	level  int16  // depth below arguments, for roleArguments: the index in ArgumentNames
	names  int    // index in nameSet.open of its first name
	filter uint64 // of its names; see nameSet
}

// A role says which names have a meaning in a container.
type role uint8

const (
	roleOther     role = iota // none has, as in nearly all containers
	roleTop                   // those of the envelope
	roleParams                // those from slotName to slotMeta
	roleArguments             // ArgumentNames at the container's level
)

// LookOnce is Look, unless m was scanned with the same ArgumentNames and has not been edited since.
func (s *Scanner) LookOnce(m *Message) {
	if !m.deep || m.edited || !slices.EqualFunc(m.names, s.ArgumentNames, slices.Equal) {
		s.Look(m)
	}
}

// Look scans m's frame once, from the first byte to the last: it records the
// positions of the envelope's members and those of params, sets the kind, and
// determines whether the frame is plain.
//
// A frame that is an array is a [Batch]; the caller scans its members one by one.
func (s *Scanner) Look(m *Message) {
	s.m, s.b, s.depth = m, m.frame, 0
	if s.stack == nil {
		s.stack = make([]container, fewContainers)
	}
	m.forget()
	m.ambiguity, m.twin, m.deep, m.names, m.lacks = 0, "", true, s.ArgumentNames, len(s.ArgumentNames) > 0
	start := skipBlank(s.b, 0)
	end := s.value(start)
	if end < 0 || skipBlank(s.b, end) != len(s.b) {
		s.flag(NotJSON)
	}
	if m.ambiguity != NotJSON && s.b[start] == '[' {
		m.kind = Batch
	} else {
		// Also for a frame that is not JSON: the members before the error are known, so that a
		// refusal can have the id.
		m.settle()
		s.checkEnvelope()
	}
	s.m, s.b = nil, nil // a Scanner lives as long as its session, and the frame may be large
	s.names.reset()
}

// flag records an ambiguity. The first one counts, except that NotJSON replaces any other.
func (s *Scanner) flag(a Ambiguity) {
	if s.m.ambiguity == 0 || a == NotJSON {
		s.m.ambiguity = a
	}
}

// value scans one value from offset i and returns the offset after it, -1 on
// bad syntax. Each turn of its loop scans a scalar, an empty container, or the
// beginning of another container, and in an object also the name that follows.
func (s *Scanner) value(i int) int {
	b, c := s.b, &s.stack[0]
	for i < len(b) {
		// A value begins.
		if c.slot != slotNone {
			s.m.spans[c.slot].start = i
		}
		switch ch := b[i]; {
		case ch == '"':
			i, _ = s.text(i + 1)
		case class[ch]&clsNumber != 0:
			i = number(b, i)
		case ch == '{' || ch == '[':
			var inside bool
			if i, inside = s.open(i, c); inside {
				c = &s.stack[s.depth] // the stack may have moved
				continue
			}
		default:
			i = literal(b, i)
		}
		// A value has ended: continue with the next one of the container, or leave the containers
		// that end here.
		for {
			if i < 0 || s.depth == 0 {
				return i
			}
			end := i
			if i = skipBlank(b, i); i == len(b) {
				return -1
			}
			ch := b[i]
			if ch != ',' && ch != c.closer {
				return -1
			}
			if c.slot != slotNone {
				s.m.spans[c.slot].end = end // only now is it known that the value ends well
				c.slot = slotNone
			}
			i++
			if ch == ',' {
				break
			}
			s.close(c)
			c = &s.stack[s.depth]
		}
		i = skipBlank(b, i)
		if c.closer == '}' {
			if i = s.name(i, c); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// close leaves the innermost container.
func (s *Scanner) close(c *container) {
	// Up to fewNames, name has compared each with those before it.
	if len(s.names.open)-c.names > fewNames && s.names.repeated(c.names) {
		s.flag(EqualKeys)
	}
	s.names.open = s.names.open[:c.names]
	s.depth--
}

// open enters the container at i. It returns the offset of its first value and
// true, or the offset behind an empty container and false; -1 on bad syntax.
func (s *Scanner) open(i int, parent *container) (next int, inside bool) {
	if s.depth == MaxDepth {
		// The rest is scanned nevertheless, for the members of the envelope after it.
		s.flag(TooDeep)
		return skip.Nested(s.b, i), false
	}
	closer := s.b[i] + 2 // '{' and '}' are two apart, '[' and ']' as well
	i = skipBlank(s.b, i+1)
	if i < len(s.b) && s.b[i] == closer {
		return i + 1, false
	}
	if s.depth++; s.depth == len(s.stack) {
		s.stack = append(s.stack, make([]container, len(s.stack))...)
	}
	c := &s.stack[s.depth]
	*c = container{closer: closer, names: len(s.names.open)}
	if s.depth == 1 || parent.role != roleOther { // below roleOther all is roleOther
		s.setRole(c, parent)
	}
	if closer == '}' {
		i = s.name(i, c)
	}
	return i, i >= 0
}

// setRole sets what the names in c mean, which depends on its parent.
func (s *Scanner) setRole(c, parent *container) {
	switch {
	case s.depth == 1:
		c.role = roleTop
	case parent.role == roleTop && parent.slot == slotParams:
		c.role = roleParams
	case parent.role == roleParams && parent.slot == slotArguments:
		c.role = roleArguments
	// A list is a level too. Its elements have names only if the level of the list has "[]".
	case parent.role == roleArguments && int(parent.level)+1 < len(s.ArgumentNames) &&
		(parent.closer == '}' || slices.Contains(s.ArgumentNames[parent.level], "[]")):
		c.role, c.level = roleArguments, parent.level+1
	}
}

// name reads a member's name and the colon, and returns the offset of its
// value, or -1.
func (s *Scanner) name(i int, c *container) int {
	b := s.b
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	i++
	hash, end := shortName(b, i)
	var long []byte // the unescaped name, if shortName does not know it
	if hash == 0 {
		behind, escaped := s.text(i)
		if behind < 0 {
			return -1
		}
		end = behind - 1
		if long = b[i:end]; escaped {
			long = s.names.unescape(long)
		}
		hash = hashName(long)
	}
	if bit := filterBit(hash); c.filter&bit == 0 {
		c.filter |= bit
	} else if own := s.names.open[c.names:]; len(own) < fewNames && slices.Contains(own, hash) { // else see close
		s.flag(EqualKeys)
	}
	s.names.open = append(s.names.open, hash)
	// A name of nine bytes is never a short one. stack[1] is the envelope, if the frame is an object.
	if string(long) == "__proto__" && (s.depth == 1 || s.stack[1].slot == slotParams) {
		s.flag(Inherited)
	}
	if c.role != roleOther {
		if long == nil {
			long = b[i:end]
		}
		s.setSlot(c, long)
	}
	if i = end + 1; i < len(b) && b[i] != ':' {
		i = skipBlank(b, i)
	}
	if i >= len(b) || b[i] != ':' {
		return -1
	}
	return skipBlank(b, i+1)
}

// text scans a string from the first byte of its inside, and returns the offset
// after its closing quote, or -1, and whether it has escapes.
func (s *Scanner) text(i int) (end int, escaped bool) {
	b, start := s.b, i
	var seen uint64 // bitwise or of all bytes, to find bytes that are not ASCII
	for {
		i, seen = textRun(b, i, seen)
		switch {
		case i == len(b) || b[i] < 0x20:
			return -1, escaped
		case b[i] == '"':
			if seen&lanes.High != 0 && !utf8.Valid(b[start:i]) {
				s.flag(NotUTF8)
			}
			return i + 1, escaped
		}
		escaped = true
		if i = escape(b, i); i < 0 {
			return -1, escaped
		}
	}
}

// setSlot sets the slot of c's member with that name, and flags a name that a lenient
// reader takes for another one with a meaning in c.
func (s *Scanner) setSlot(c *container, name []byte) {
	first, last := slotVersion, slotError
	switch c.role {
	case roleParams:
		first, last = slotName, slotMeta
	case roleArguments:
		if int(c.level) < len(s.ArgumentNames) {
			s.flagTwin(name, s.ArgumentNames[c.level])
		}
		return
	}
	switch c.slot = slotAmong(name, first, last); c.slot {
	case slotNone:
		s.flagTwin(name, slotNames[first:last+1])
	case slotID:
		s.m.ids++ // equal names are found elsewhere; with two ids, Message.ID is nil
	}
}

// flagTwin flags name if it is not one of known, but a lenient reader takes it for one
// of them.
func (s *Scanner) flagTwin(name []byte, known []string) {
	for _, k := range known {
		switch {
		case string(name) == k:
			s.m.lacks = false
		case SameName(name, k):
			s.flag(TwinName)
			s.m.twin = k
		}
	}
}
