// Package callid compares, indexes and remembers the ids of requests.
//
// An id is compared as its bytes: "1" is not 1, and no integer is too large. Peers
// may spell one id differently, so escapes in a string are resolved, and there are
// looser ways to compare where a mistake must be on the safe side.
package callid

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire"
)

// inlineLen is the longest raw id kept without allocating, in bytes. A UUID in
// its quotes has 38.
const inlineLen = 39

// tinyLen is the longest raw id that is looked up as a number, in bytes: those that
// clients count up, and cheaper to hash and compare.
const tinyLen = 8

// A Key is a raw id of up to 39 bytes, in one spelling.
type Key struct {
	n uint8
	b [inlineLen]byte
}

// Of returns the key of a raw id; for an id that does not fit, it is the empty key
// and the text to look under. Escapes are resolved, unless that loses what the
// string was.
func Of(raw []byte) (k Key, long string) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
		if text := (wire.Value{Raw: raw}).Text(); !strings.ContainsRune(text, utf8.RuneError) {
			raw = wire.Quote(text)
		}
	}
	if len(raw) > inlineLen {
		return Key{}, string(raw)
	}
	k.n = uint8(copy(k.b[:], raw))
	return k, ""
}

// Clone returns the id as raw bytes of its own.
func (k *Key) Clone() []byte { return bytes.Clone(k.b[:k.n]) }

// tiny returns a tiny id as a number. No two are the same one: the rest is filled
// with NULs, and an id ends in a digit or a quote.
func (k *Key) tiny() uint64 { return binary.LittleEndian.Uint64(k.b[:tinyLen]) }

// Clean returns a raw id that may be written into a message of the proxy's own, and
// nil for any other. What is read out of a frame that is not plain may be no JSON
// at all: a bare carriage return in it would be the end of the line, and the
// beginning of another message, for some who read it.
func Clean(raw []byte) []byte {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil
	}
	return raw
}

// Clip shortens a raw id for a log.
func Clip(raw []byte) string {
	if len(raw) > 100 {
		return string(raw[:100]) + "…"
	}
	return string(raw)
}
