package wire

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// A nameSet holds the names of the members of all open objects, to find two
// equal ones. It keeps hashes alone: a name of up to seven bytes is its own
// hash, and longer ones are hashed under a random seed, so that a peer cannot
// choose names that collide. Two names that do collide refuse a good frame,
// once in 2^64/n² frames; no equal names are ever missed.
type nameSet struct {
	open  []uint64
	table []uint64
	seed  maphash.Seed
	plain []byte // scratch for unescaped names
}

const (
	fewNames  = 16      // up to so many names of an object are compared one by one
	tableMax  = 4096    // up to so many are looked up in one table
	keepNames = 1 << 16 // up to so much scratch is kept for the next frame
)

// shortName returns the hash of the name whose inside begins at i, and the
// offset of its closing quote, if it is of up to seven bytes, ASCII and without
// escapes. Otherwise the hash is 0.
func shortName(b []byte, i int) (hash uint64, end int) {
	if i+8 > len(b) {
		return 0, 0
	}
	w := word(b, i)
	f := textEnd(w)
	if f == 0 {
		return 0, 0
	}
	n := bits.TrailingZeros64(f) / 8
	w &= f&-f>>7 - 1
	if w&laneHigh != 0 || b[i+n] != '"' {
		return 0, 0
	}
	return w | uint64(n+1)<<56, i + n
}

// hash returns the hash of a name, given as it reads after unescaping. It is
// never 0.
func (n *nameSet) hash(name []byte) uint64 {
	if len(name) >= 8 {
		return maphash.Bytes(n.secret(), name) | 1<<63
	}
	var w uint64
	for i, c := range name {
		w |= uint64(c) << (8 * i)
	}
	return w | uint64(len(name)+1)<<56
}

func (n *nameSet) secret() maphash.Seed {
	if n.seed == (maphash.Seed{}) {
		n.seed = maphash.MakeSeed()
	}
	return n.seed
}

// unescape returns a name as it reads after unescaping; valid until the next
// call.
func (n *nameSet) unescape(name []byte) []byte {
	n.plain = appendUnescaped(n.plain[:0], name)
	return n.plain
}

// filterBit returns the bit that stands for a name in the filter of its object:
// only names that share it can be equal.
func filterBit(hash uint64) uint64 { return 1 << (hash * 0x9e3779b97f4a7c15 >> 58) }

// has reports whether the innermost object, whose names are those from index
// first on, has the name. Of an object with many names repeated tells.
func (n *nameSet) has(hash uint64, first int) bool {
	own := n.open[first:]
	return len(own) < fewNames && slices.Contains(own, hash)
}

// repeated reports whether two names are equal in the innermost object, whose
// names are those from index first on. It spoils them.
func (n *nameSet) repeated(first int) bool {
	own := n.open[first:]
	// Multiplying by an odd number keeps different hashes different, and spreads
	// the short names, which are not random, over the high bits.
	odd := maphash.Bytes(n.secret(), nil) | 1
	for i := range own {
		own[i] *= odd
	}
	return n.repeats(own, 64)
}

// repeats reports whether two of the hashes are equal. All are equal from bit
// low up.
func (n *nameSet) repeats(hashes []uint64, low int) bool {
	if len(hashes) <= tableMax {
		return n.tabulate(hashes, low)
	}
	if low == 0 {
		return true
	}
	start := 0
	for _, end := range partition(hashes, low-8) {
		if n.repeats(hashes[start:end], low-8) {
			return true
		}
		start = end
	}
	return false
}

// partition orders hashes by the eight bits from low up, in place, and returns
// where each of the 256 parts ends.
func partition(hashes []uint64, low int) (ends [256]int) {
	for _, h := range hashes {
		ends[h>>low&255]++
	}
	var next [256]int
	sum := 0
	for i, n := range ends {
		next[i] = sum
		sum += n
		ends[i] = sum
	}
	for i := range ends {
		for next[i] < ends[i] {
			h := hashes[next[i]]
			to := &next[h>>low&255]
			hashes[next[i]], hashes[*to] = hashes[*to], h
			*to++
		}
	}
	return ends
}

// tabulate is repeats for as many hashes as the table takes. It places them by
// the bits below low.
func (n *nameSet) tabulate(hashes []uint64, low int) bool {
	if n.table == nil {
		n.table = make([]uint64, 2*tableMax)
	}
	size := bits.Len(uint(2*len(hashes) - 1)) // in bits; at most half of it is used
	table := n.table[:1<<size]
	clear(table)
	for _, h := range hashes {
		i := int(h << (64 - low) >> (64 - size))
		for table[i] != 0 {
			if table[i] == h {
				return true
			}
			i = (i + 1) & (len(table) - 1)
		}
		table[i] = h
	}
	return false
}

// reset forgets all names, and gives back what a frame with very many or very
// long ones has left.
func (n *nameSet) reset() {
	n.open = n.open[:0]
	if cap(n.open) > keepNames {
		n.open = nil
	}
	if cap(n.plain) > keepNames {
		n.plain = nil
	}
}
