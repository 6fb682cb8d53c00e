package wire

import (
	"bytes"
	"iter"
	"unsafe"

	"github.com/attache-mcp/attache/proxy/wire/internal/jsonstring"
	"github.com/attache-mcp/attache/proxy/wire/internal/skip"
)

// A Value is a JSON value and its position: Raw is the value's text without
// surrounding white space, Off the offset of its first byte in its frame. The zero
// Value does not exist.
//
// A Value is a view: it is valid as long as the message that it was taken from.
// After an edit of that message Raw is still valid, but Off is wrong. The methods
// expect text that a scanner has accepted; for other text they stop early and
// never read past Raw.
type Value struct {
	Raw []byte
	Off int
}

// Exists reports whether the value exists. A null exists.
func (v Value) Exists() bool { return len(v.Raw) > 0 }

// IsNull reports whether the value is the literal null.
func (v Value) IsNull() bool { return string(v.Raw) == "null" }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return len(v.Raw) > 0 && v.Raw[0] == '{' }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return len(v.Raw) > 0 && v.Raw[0] == '[' }

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return len(v.Raw) > 1 && v.Raw[0] == '"' }

// Text returns the value of a string without escapes, "" for any other value. A lone
// surrogate becomes U+FFFD.
func (v Value) Text() string {
	if !v.IsString() {
		return ""
	}
	return jsonstring.Unquote(v.Raw)
}

// View is Text without a copy: unless the value has escapes, the string shares the
// frame's bytes and is valid only as long as they are. It must not be kept.
func (v Value) View() string {
	if !v.IsString() {
		return ""
	}
	in := v.Raw[1 : len(v.Raw)-1]
	if len(in) == 0 || bytes.IndexByte(in, '\\') >= 0 {
		return jsonstring.Unquote(v.Raw)
	}
	return unsafe.String(&in[0], len(in))
}

// Equals reports whether the value is a string equal to s. It does not
// allocate unless the string has escapes.
func (v Value) Equals(s string) bool {
	return v.IsString() && jsonstring.Is(v.Raw, s)
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
			// At the closing bracket, which begins no value, skip.Value returns -1.
			e, next, ok := v.valueAt(skip.Separator(v.Raw, i))
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
		if jsonstring.Is(k.Raw, key) {
			return val
		}
		i = next
	}
}

// open returns the offset after the bracket v opens with, and len(v.Raw) if v
// does not open with it.
func (v Value) open(bracket byte) int {
	if len(v.Raw) == 0 || v.Raw[0] != bracket {
		return len(v.Raw)
	}
	return 1
}

// nextMember reads the next member from offset i, which is after the opening brace or
// after a member. After the last one there is no quote, but the closing brace.
func (v Value) nextMember(i int) (key, val Value, next int, ok bool) {
	i = skip.Separator(v.Raw, i)
	if i >= len(v.Raw) || v.Raw[i] != '"' {
		return Value{}, Value{}, 0, false
	}
	end := skip.String(v.Raw, i)
	if end < 0 {
		return Value{}, Value{}, 0, false
	}
	key = v.sub(i, end)
	i = skip.Space(v.Raw, end)
	if i >= len(v.Raw) || v.Raw[i] != ':' {
		return Value{}, Value{}, 0, false
	}
	val, next, ok = v.valueAt(skip.Space(v.Raw, i+1))
	return key, val, next, ok
}

// valueAt reads the value that begins at offset i.
func (v Value) valueAt(i int) (e Value, next int, ok bool) {
	if i >= len(v.Raw) {
		return Value{}, 0, false
	}
	end := skip.Value(v.Raw, i)
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

// Quote returns s as a JSON string. Only what JSON demands is escaped, so text
// stays readable on the wire; invalid UTF-8 becomes U+FFFD.
func Quote(s string) []byte { return AppendQuote(nil, s) }

// AppendQuote appends s as a JSON string to dst.
func AppendQuote(dst []byte, s string) []byte { return jsonstring.AppendQuoted(dst, s) }

// SameName reports whether some reader takes name, which is unescaped, for known. It
// compares both without blanks, control and invisible characters, under Unicode's
// full case folding, and takes a dotless and a dotted i for an i. So it finds at
// least what encoding/json, Java's equalsIgnoreCase and trim, and Python's
// casefold, lower, upper and strip take for equal.
func SameName(name []byte, known string) bool { return jsonstring.SameName(name, known) }

// HasTwin reports whether an object has a member with another name than known that some reader
// takes for known: see [SameName].
func (v Value) HasTwin(known string) bool {
	for m := range v.Members() {
		if !m.Key.Equals(known) && SameName([]byte(m.Key.View()), known) {
			return true
		}
	}
	return false
}

// Mentions reports whether some reader finds name in frame, escaped or as another
// spelling that [SameName] takes for it. It is for a frame that cannot be taken apart,
// and need not be JSON: the name may stand anywhere.
func Mentions(frame []byte, name string) bool { return jsonstring.Mentions(frame, name) }

// Fold returns the letters of name that [SameName] compares.
func Fold(name string) string { return jsonstring.Fold(name) }
