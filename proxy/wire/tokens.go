package wire

import (
	"math/bits"

	"github.com/attache-mcp/attache/proxy/wire/internal/jsonstring"
	"github.com/attache-mcp/attache/proxy/wire/internal/lanes"
)

// skipBlank skips the white space of a plain frame. That excludes carriage returns, which end a line
// for some readers. A newline cannot be inside: it ends the frame.
func skipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// textRun returns the offset of the first quote, backslash or control byte at
// or after i, len(b) if there is none, and seen with all bytes before it. The
// bytes are joined by a bitwise or, at any lane: only the high bits count.
func textRun(b []byte, i int, seen uint64) (int, uint64) {
	for n := 0; i+8 <= len(b); n++ {
		w := lanes.Word(b, i)
		if f := lanes.TextEnd(w); f != 0 {
			// f&-f is the bit that marks the lane, so the mask has the lanes below it.
			return i + bits.TrailingZeros64(f)/8, seen | w&(f&-f>>7-1)
		}
		seen |= w
		if i += 8; n >= 4 { // the string is not short
			i, seen = longText(b, i, seen)
		}
	}
	for ; i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\'; i++ {
		seen |= uint64(b[i])
	}
	return i, seen
}

// longText is textRun in steps of 32 bytes. It stops at one of the 32 before
// what textRun looks for, or near the end of b, and textRun continues there.
func longText(b []byte, i int, seen uint64) (int, uint64) {
	for ; i+32 <= len(b); i += 32 {
		p := b[i : i+32 : i+32]
		w0, w1, w2, w3 := lanes.Word(p, 0), lanes.Word(p, 8), lanes.Word(p, 16), lanes.Word(p, 24)
		if (lanes.TextEndBits(w0)|lanes.TextEndBits(w1)|lanes.TextEndBits(w2)|lanes.TextEndBits(w3))&lanes.High != 0 {
			break
		}
		seen |= w0 | w1 | w2 | w3
	}
	return i, seen
}

// escape checks the escape sequence at i and returns the offset after it, or
// -1. It accepts a lone surrogate, as JSON does: see clearName for the strings
// in which that matters.
func escape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	if class[b[i+1]]&clsEscape != 0 {
		return i + 2
	}
	if b[i+1] != 'u' {
		return -1
	}
	if _, ok := jsonstring.Hex4(b[i+2:]); !ok {
		return -1
	}
	return i + 6
}

// number returns the offset after the number at i, or -1.
func number(b []byte, i int) int {
	if i+8 <= len(b) {
		// The usual case: an integer of up to seven digits. With a sign, n is 0. A number like 01 takes
		// the way below, on which it ends after the 0: the caller finds the 1 in place of a comma.
		if f := lanes.NotDigit(lanes.Word(b, i)); f != 0 {
			n := bits.TrailingZeros64(f) / 8
			if (n == 1 || n > 1 && b[i] != '0') && class[b[i+n]]&clsFraction == 0 {
				return i + n
			}
		}
	}
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = digits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = digits(b, i)
	}
	return i
}

// digits returns the offset after one digit or more, or -1.
func digits(b []byte, i int) int {
	start := i
	for i < len(b) && class[b[i]]&clsDigit != 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// literal returns the offset after the literal at i, or -1.
func literal(b []byte, i int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
			return end
		}
	}
	return -1
}

// The classes of bytes. One look-up takes the place of several comparisons.
const (
	clsDigit    = 1 << iota
	clsNumber   // what a number begins with
	clsFraction // what continues a number after its first digits
	clsEscape   // what may follow a backslash, except u, which needs four digits more
)

var class = func() (t [256]uint8) {
	mark := func(set string, bit uint8) {
		for i := range len(set) {
			t[set[i]] |= bit
		}
	}
	mark("0123456789", clsDigit)
	mark("-0123456789", clsNumber)
	mark(".eE", clsFraction)
	mark(`"\/bfnrt`, clsEscape)
	return t
}()
