// Package skip finds the end of a JSON value, at memory speed. It matches brackets and strings, and checks
// nothing else. No function allocates.
package skip

import (
	"bytes"
	"math/bits"

	"github.com/attache-mcp/attache/proxy/wire/internal/lanes"
)

// IsSpace reports whether a byte is white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// Space returns the offset of the first byte from i on that is not white space, or len(b).
func Space(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// Trim returns b without white space around it.
func Trim(b []byte) []byte { return TrimRight(b[Space(b, 0):]) }

// TrimRight returns b without white space at its end.
func TrimRight(b []byte) []byte {
	for len(b) > 0 && IsSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// Separator returns the offset after white space and at most one comma.
func Separator(b []byte, i int) int {
	i = Space(b, i)
	if i < len(b) && b[i] == ',' {
		i = Space(b, i+1)
	}
	return i
}

// Value returns the offset after the value that begins at i, or -1. What begins with no bracket and no
// quote is a scalar up to a byte that ends one: its text is not checked.
func Value(b []byte, i int) int {
	switch b[i] {
	case '"':
		return String(b, i)
	case '{', '[':
		return Nested(b, i)
	}
	start := i
	for i < len(b) && !EndsScalar(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// EndsScalar reports whether a byte ends a number or literal.
func EndsScalar(c byte) bool { return endsScalar[c] }

var endsScalar = func() (t [256]bool) {
	for _, c := range []byte(",}] \t\r\n:\"{[") {
		t[c] = true
	}
	return t
}()

// String returns the offset after the string that opens at i, or -1 when
// it does not end in b.
func String(b []byte, i int) int {
	if i++; i+8 <= len(b) {
		// The usual case: a short string.
		if f := lanes.StringMark(lanes.Word(b, i)); f != 0 && b[i+bits.TrailingZeros64(f)/8] == '"' {
			return i + bits.TrailingZeros64(f)/8 + 1
		}
	}
	end, _ := StringEnd(b, i)
	if end == len(b) {
		return -1
	}
	return end + 1
}

// Nested returns the offset after the object or array that opens at i, or -1 when it does not end in b.
func Nested(b []byte, i int) int {
	k := State{Depth: 1}
	end := k.Over(b, i+1)
	if k.Depth > 0 {
		return -1
	}
	return end
}

// near is the number of bytes of a string that are read word by word before IndexByte, whose
// call costs as much as a few words.
const near = 64

// StringEnd returns the offset of the quote that ends the string which continues at
// i, or len(b) if it does not end in b. Then escaped says whether b ends in a
// backslash that escapes the next byte.
func StringEnd(b []byte, i int) (end int, escaped bool) {
	for i < len(b) {
		if i = nearMark(b, i, min(len(b), i+near)); i < len(b) && b[i] != '"' && b[i] != '\\' {
			// Far from any mark. Whether the next quote is escaped depends only on the
			// backslashes directly before it.
			if i, escaped = farQuote(b, i); i < len(b) && escaped {
				i++
				continue
			}
			return i, escaped
		}
		switch {
		case i == len(b):
			return i, false
		case b[i] == '"':
			return i, false
		case i+1 == len(b):
			return i + 1, true
		}
		i += 2
	}
	return len(b), false
}

// nearMark returns the offset of the first quote or backslash in b[i:end], and
// end if there is none.
func nearMark(b []byte, i, end int) int {
	for ; i+8 <= end; i += 8 {
		if f := lanes.StringMark(lanes.Word(b, i)); f != 0 {
			return i + bits.TrailingZeros64(f)/8
		}
	}
	for i < end && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// farQuote returns the offset of the next quote, or len(b), and whether an odd
// run of backslashes precedes it. The byte at i is not escaped.
func farQuote(b []byte, i int) (end int, escaped bool) {
	end = len(b)
	if n := bytes.IndexByte(b[i:], '"'); n >= 0 {
		end = i + n
	}
	run := end
	for run > i && b[run-1] == '\\' {
		run--
	}
	return end, (end-run)&1 != 0
}

// A State is a position inside nested arrays and objects, from which skipping can
// continue in the next chunk.
type State struct {
	// Depth is how many containers are still open.
	Depth int

	inString uint64 // all ones inside a string, zero outside
	escaped  bool   // the last byte was a backslash that escapes the next byte
}

// Over continues at offset i. It returns the offset after the bracket that closes
// the outermost container, or len(b) with Depth > 0 if that bracket is not in b.
//
// It reads a word at a time. Inside a string, the number of quotes up to a lane is
// odd; multiplying by Ones computes these sums for all lanes at once. The sums of
// brackets outside strings give the depth in the same way.
func (k *State) Over(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := lanes.Word(b, i)
		// With the high bits off, w^Quote is zero in the lanes of quotes. Adding Low sets the high bit of
		// all others, and carries nowhere. A byte that had its high bit is not ASCII, so it is no mark.
		ascii := ^w & lanes.Vars.High
		w &= lanes.Vars.Low
		quotes := ascii &^ ((w ^ lanes.Vars.Quote) + lanes.Vars.Low)
		if slashes := ascii &^ ((w ^ lanes.Vars.Slash) + lanes.Vars.Low); slashes != 0 || k.escaped {
			quotes &^= k.escapedLanes(slashes)
		}
		// Only the lowest bit of each lane counts: it is 1 from an opening quote to the byte before
		// the closing one. A sum is at most eight, so no lane carries into the next.
		in := (quotes>>7)*lanes.Vars.Ones ^ k.inString
		if in == ^uint64(0) && !k.escaped {
			// Everything is text, so skip to the end of the string.
			if i, k.escaped = StringEnd(b, i+8); k.escaped || i == len(b) {
				return i
			}
			i -= 8
			continue
		}
		w |= lanes.Vars.Bit5 // [ and ] become { and }
		opened := ((ascii &^ ((w ^ lanes.Vars.Open) + lanes.Vars.Low)) >> 7 &^ in) * lanes.Vars.Ones
		closed := ((ascii &^ ((w ^ lanes.Vars.Close) + lanes.Vars.Low)) >> 7 &^ in) * lanes.Vars.Ones
		if int(closed>>56) >= k.Depth {
			// The outermost container may close in this word, in the first lane of depth
			// zero. Depth is at most eight here, so a lane has room for it. A borrow from a
			// lane below zero changes only the lanes above it.
			depths := opened + uint64(k.Depth)*lanes.Vars.Ones - closed
			// Subtracting 1 sets the high bit of a lane of zero, and of none below it.
			if zero := (depths - lanes.Vars.Ones) &^ depths & lanes.Vars.High; zero != 0 {
				k.Depth = 0
				return i + bits.TrailingZeros64(zero)/8 + 1
			}
		}
		k.Depth += int(opened>>56) - int(closed>>56)
		k.inString = -(in >> 56 & 1)
	}
	for ; i < len(b) && k.Depth > 0; i++ {
		k.step(b[i])
	}
	return i
}

// escapedLanes marks the lanes that a backslash escapes. slashes marks the lanes with
// a backslash. Outside of strings JSON has none, so it need not know which are inside.
func (k *State) escapedLanes(slashes uint64) (escaped uint64) {
	escaped = slashes << 8
	if k.escaped {
		escaped |= 0x80
	}
	k.escaped = slashes>>63 != 0
	if escaped&slashes == 0 {
		return escaped
	}
	// With several backslashes in a row, what each one escapes depends on those before it.
	for lane := uint64(0x80); lane<<8 != 0; lane <<= 8 {
		if escaped&slashes&lane != 0 {
			escaped &^= lane << 8
		}
	}
	k.escaped = slashes&^escaped>>63 != 0
	return escaped
}

func (k *State) step(c byte) {
	escaped := k.escaped
	k.escaped = false
	switch {
	case c == '\\':
		k.escaped = !escaped
	case c == '"':
		if !escaped {
			k.inString = ^k.inString
		}
	case k.inString != 0:
	case c == '{' || c == '[':
		k.Depth++
	case c == '}' || c == ']':
		k.Depth--
	}
}
