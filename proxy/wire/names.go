package wire

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/attache-mcp/attache/proxy/wire/internal/jsonstring"
	"github.com/attache-mcp/attache/proxy/wire/internal/lanes"
)

// A nameSet holds the names of the members of all open objects, to find equal
// names. It keeps hashes: a name of up to seven bytes is its own hash, and longer
// names are hashed under a random seed, so that a peer cannot choose names that
// collide. A collision, once in 2^64/n² frames, makes a plain frame ambiguous.
type nameSet struct {
	open  []uint64
	plain []byte // scratch for unescaped names
}

const (
	fewNames  = 16      // objects with at most so many names are searched linearly, others sorted at their end
	keepNames = 1 << 16 // the largest capacity of scratch that is kept for the next frame
)

// shortName returns the hash of the name whose inside begins at i, and the
// offset of its closing quote, if it is of up to seven bytes, ASCII and without
// escapes. Otherwise the hash is 0.
func shortName(b []byte, i int) (hash uint64, end int) {
	if i+8 > len(b) {
		return 0, 0
	}
	w := lanes.Word(b, i)
	f := lanes.TextEnd(w)
	if f == 0 {
		return 0, 0
	}
	n := bits.TrailingZeros64(f) / 8
	w &= f&-f>>7 - 1 // the lanes of the name: see textRun
	if w&lanes.High != 0 || b[i+n] != '"' {
		return 0, 0
	}
	// The length keeps "a" from "a\u0000", and the hash of the empty name from 0.
	return w | uint64(n+1)<<56, i + n
}

// seed is the seed of the hashes of long names.
var seed = maphash.MakeSeed()

// hashName returns the hash of an unescaped name. It is never 0. For a short name it is that of
// shortName: the same name may come with escapes and without. That of a long name has the
// highest bit, which no length of a short one sets.
func hashName(name []byte) uint64 {
	if len(name) >= 8 {
		return maphash.Bytes(seed, name) | 1<<63
	}
	var w uint64
	for i, c := range name {
		w |= uint64(c) << (8 * i)
	}
	return w | uint64(len(name)+1)<<56
}

// unescape returns the unescaped name. It is valid until the next call.
func (n *nameSet) unescape(name []byte) []byte {
	n.plain = jsonstring.AppendUnescaped(n.plain[:0], name)
	return n.plain
}

// filterBit returns the bit that stands for a name in the filter of its object:
// only names that share it can be equal. The factor, 2^64 divided by the golden
// ratio, lets all bits of a hash count.
func filterBit(hash uint64) uint64 { return 1 << (hash * 0x9e3779b97f4a7c15 >> 58) }

// repeated reports whether two names are equal in the innermost object, whose names begin at index
// first. It reorders them.
func (n *nameSet) repeated(first int) bool {
	own := n.open[first:]
	slices.Sort(own)
	for i := range own[1:] {
		if own[i] == own[i+1] {
			return true
		}
	}
	return false
}

// reset removes all names, and releases memory that very many or very long names needed.
func (n *nameSet) reset() {
	n.open = n.open[:0]
	if cap(n.open) > keepNames {
		n.open = nil
	}
	if cap(n.plain) > keepNames {
		n.plain = nil
	}
}
