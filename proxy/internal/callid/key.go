// Package callid compares, indexes and remembers the ids of requests.
//
// Ids are compared as bytes: "1" is not 1, and no integer is too large. Peers may write one id
// differently, so escapes in a string are resolved, and looser comparisons exist for cases in which a
// mistake must be on the safe side.
package callid

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/proxy/wire"
)

// inlineLen is the length in bytes of the longest raw id that is kept without allocating. A UUID in
// quotes has 38.
const inlineLen = 39

// tinyLen is the length in bytes of the longest raw id that is looked up as a number, which is cheaper
// to hash and compare. Ids that are counters are shorter.
const tinyLen = 8

// A Key is a raw id of up to 39 bytes without escapes. Keys are compared with all their bytes, so those
// after n are zero.
type Key struct {
	n uint8
	b [inlineLen]byte
}

// Of returns the key of a raw id. For an id that does not fit into a Key, it returns the zero Key and
// the id as a string. Escapes are resolved, unless one is a lone surrogate, which has no UTF-8.
func Of(raw []byte) (k Key, long string) {
	raw = resolved(raw)
	if len(raw) > inlineLen {
		return Key{}, string(raw)
	}
	k.n = uint8(copy(k.b[:], raw))
	return k, ""
}

// resolved returns a raw id with its escapes resolved, because peers may write one id differently. It
// returns raw itself if there is nothing to resolve.
func resolved(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' || bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	text := (wire.Value{Raw: raw}).Text()
	// With a lone surrogate, two different ids could become one, so such an id keeps its escapes.
	if strings.ContainsRune(text, utf8.RuneError) {
		return raw
	}
	return wire.Quote(text)
}

// Text is like Of, for ids and progress tokens that stay in memory. It returns a key for a map, which is short
// even if a peer has sent a long id (see kept.Text). It returns "" for no id.
func Text(raw []byte) string { return kept.Text(string(resolved(raw))) }

// Lookup returns the value in m under Text(raw). It allocates only for ids with escapes and for long ids,
// because a front looks up the call of each reply.
func Lookup[V any](m map[string]V, raw []byte) V {
	if id := resolved(raw); len(id) <= kept.Max {
		return m[string(id)]
	}
	return m[Text(raw)]
}

// Clone returns a copy of the raw id.
func (k *Key) Clone() []byte { return bytes.Clone(k.b[:k.n]) }

// tiny returns a tiny id as a number. Different ids have different numbers, because the rest of the
// bytes are NULs and an id ends in a digit or a quote.
func (k *Key) tiny() uint64 { return binary.LittleEndian.Uint64(k.b[:tinyLen]) }

// Clean returns raw if it may be written into a message that attache makes, and else nil. An id from a
// frame that is not plain may not be JSON: for some readers, a bare carriage return in it would end
// the line and begin another message.
func Clean(raw []byte) []byte {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil
	}
	return raw
}

// IsOfReply reports whether reply, which may be nil, has the raw id, with the same bytes.
func IsOfReply(raw []byte, reply *wire.Message) bool {
	return reply != nil && bytes.Equal(reply.Get("id").Raw, raw)
}

// Clip shortens a raw id for a log.
func Clip(raw []byte) string {
	if len(raw) > 100 {
		return string(raw[:100]) + "…"
	}
	return string(raw)
}
