package wire

import (
	"bytes"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// A Value is a JSON value and where it stands: Raw is the value's text without
// surrounding white space, Off the offset of its first byte in the frame it was
// taken from. The zero Value is "not there".
//
// A Value is a view: it is valid as long as the message it was taken from. After
// an edit of that message Raw still reads as before, but Off is wrong. Its
// methods expect text a scanner has accepted; on anything else they stop early
// and never read past Raw.
type Value struct {
	Raw []byte
	Off int
}

// Exists reports whether the value is there at all; null exists.
func (v Value) Exists() bool { return len(v.Raw) > 0 }

// IsNull reports whether the value is the literal null.
func (v Value) IsNull() bool { return string(v.Raw) == "null" }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return len(v.Raw) > 0 && v.Raw[0] == '{' }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return len(v.Raw) > 0 && v.Raw[0] == '[' }

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return len(v.Raw) > 1 && v.Raw[0] == '"' }

// Text returns the string the value stands for, and "" for anything but a
// string. Escapes are resolved; a lone surrogate becomes U+FFFD.
func (v Value) Text() string {
	if !v.IsString() {
		return ""
	}
	return unquote(v.Raw)
}

// View is Text without a copy: the string shares the frame's bytes where it has
// no escapes, and is valid only as long as they are. It must not be kept.
func (v Value) View() string {
	if !v.IsString() {
		return ""
	}
	in := v.Raw[1 : len(v.Raw)-1]
	if len(in) == 0 || bytes.IndexByte(in, '\\') >= 0 {
		return unquote(v.Raw)
	}
	return unsafe.String(&in[0], len(in))
}

// Equals reports whether the value is a string equal to s. It does not
// allocate unless the string has escapes.
func (v Value) Equals(s string) bool {
	return v.IsString() && stringIs(v.Raw, s)
}

// A Member is one member of an object.
type Member struct {
	Key   Value // with its quotes
	Value Value
}

// Members yields the members of an object in order, and nothing for any other
// value.
func (v Value) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for i := v.open('{'); ; {
			key, val, next, ok := v.nextMember(i)
			if !ok || !yield(Member{key, val}) {
				return
			}
			i = next
		}
	}
}

// Elements yields the elements of an array in order, and nothing for any other
// value.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for i := v.open('['); ; {
			e, next, ok := v.nextElement(i)
			if !ok || !yield(e) {
				return
			}
			i = next
		}
	}
}

// Get returns the member found by following keys, one object deeper with each.
// Keys are compared after unescaping. With no keys it returns v.
func (v Value) Get(keys ...string) Value {
	for _, k := range keys {
		v = v.member(k)
	}
	return v
}

func (v Value) member(key string) Value {
	for i := v.open('{'); ; {
		k, val, next, ok := v.nextMember(i)
		if !ok {
			return Value{}
		}
		if stringIs(k.Raw, key) {
			return val
		}
		i = next
	}
}

// open returns the offset behind the bracket v opens with, and len(v.Raw) if v
// does not open with it.
func (v Value) open(bracket byte) int {
	if len(v.Raw) == 0 || v.Raw[0] != bracket {
		return len(v.Raw)
	}
	return 1
}

// nextMember reads the member at or behind offset i, which stands behind the
// opening brace or behind a member.
func (v Value) nextMember(i int) (key, val Value, next int, ok bool) {
	i = skipSeparator(v.Raw, i)
	if i >= len(v.Raw) || v.Raw[i] != '"' {
		return Value{}, Value{}, 0, false
	}
	end := skipString(v.Raw, i)
	if end < 0 {
		return Value{}, Value{}, 0, false
	}
	key = v.sub(i, end)
	i = skipSpace(v.Raw, end)
	if i >= len(v.Raw) || v.Raw[i] != ':' {
		return Value{}, Value{}, 0, false
	}
	val, next, ok = v.valueAt(skipSpace(v.Raw, i+1))
	return key, val, next, ok
}

// nextElement reads the element at or behind offset i, which stands behind the
// opening bracket or behind an element.
func (v Value) nextElement(i int) (e Value, next int, ok bool) {
	return v.valueAt(skipSeparator(v.Raw, i))
}

// valueAt reads the value that begins at offset i.
func (v Value) valueAt(i int) (e Value, next int, ok bool) {
	if i >= len(v.Raw) {
		return Value{}, 0, false
	}
	end := skipValue(v.Raw, i)
	if end < 0 {
		return Value{}, 0, false
	}
	return v.sub(i, end), end, true
}

// sub returns the part [start, end) of v. Appending to it never overwrites what
// follows in the frame.
func (v Value) sub(start, end int) Value {
	return Value{v.Raw[start:end:end], v.Off + start}
}

const (
	clsEndScalar = 1 << iota // what ends a number or literal
	clsDigit
	clsNumber   // what a number begins with
	clsFraction // what goes on a number behind its first digits
	clsEscape   // what may follow a backslash, u aside
)

var class = func() (t [256]uint8) {
	mark := func(set string, bit uint8) {
		for i := range len(set) {
			t[set[i]] |= bit
		}
	}
	mark(",}] \t\r\n:\"{[", clsEndScalar)
	mark("0123456789", clsDigit)
	mark("-0123456789", clsNumber)
	mark(".eE", clsFraction)
	mark(`"\/bfnrt`, clsEscape)
	return t
}()

// stringIs reports whether the quoted JSON string raw stands for s.
func stringIs(raw []byte, s string) bool {
	in := raw[1 : len(raw)-1]
	switch {
	case len(in) < len(s):
		return false // an escape is longer than what it stands for
	case len(in) > 6*len(s):
		return false // and at most six times as long
	case len(in) > 0 && in[0] != s[0] && in[0] != '\\':
		return false // most of what it is compared with
	case len(in) == len(s) && string(in) != s:
		return false // with an escape it stands for something shorter
	case bytes.IndexByte(in, '\\') < 0:
		return string(in) == s
	}
	return string(appendUnescaped(make([]byte, 0, 128), in)) == s
}

// unquote returns what the quoted JSON string raw stands for.
func unquote(raw []byte) string {
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	return string(appendUnescaped(make([]byte, 0, len(in)), in))
}

// appendUnescaped appends the text of in, the inside of a JSON string, to dst.
func appendUnescaped(dst, in []byte) []byte {
	for i := 0; i < len(in); {
		c := in[i]
		if c != '\\' || i+1 == len(in) {
			dst = append(dst, c)
			i++
			continue
		}
		i += 2
		switch c = in[i-1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := unescapeRune(in[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// unescapeRune reads the four hex digits behind \u, and a second escape if the
// two make a surrogate pair. n is how many bytes were read.
func unescapeRune(in []byte) (r rune, n int) {
	r, ok := hex4(in)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(in) >= 10 && in[4] == '\\' && in[5] == 'u' {
		if low, ok := hex4(in[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(in []byte) (rune, bool) {
	if len(in) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range in[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Quote returns s as a JSON string. Only what JSON demands is escaped, so text
// stays readable on the wire; invalid UTF-8 becomes U+FFFD.
func Quote(s string) []byte { return AppendQuote(nil, s) }

// AppendQuote appends s as a JSON string to dst.
func AppendQuote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	clear := plainText(s)
	dst = append(dst, s[:clear]...)
	for _, r := range s[clear:] {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// plainText returns how many bytes at the beginning of s are ASCII that stands in a
// JSON string as it is.
func plainText(s string) int {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x80 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
