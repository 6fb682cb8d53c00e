package wire

import "encoding/binary"

// The scans read eight bytes at a time as the lanes of a word, lowest address
// in the lowest lane, and mark a lane by its high bit.
const (
	laneOnes = 0x0101010101010101
	laneHigh = 0x8080808080808080
	laneLow  = 0x7f7f7f7f7f7f7f7f
)

// lanes holds the same in variables, for the loops: the compiler makes a constant
// again at every use, which costs the one that skips a fifth of its speed.
var lanes = struct{ ones, high, low, quote, slash, open, close, bit5, bit1, upto20 uint64 }{
	laneOnes, laneHigh, laneLow, laneOnes * '"', laneOnes * '\\', laneOnes * '{', laneOnes * '}', laneOnes * 0x20, laneOnes * 2, laneOnes * 0x21,
}

// word returns the eight bytes from offset i, which must be there.
func word(b []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(b[i : i+8 : i+8])
}

// textEnd marks the lowest lane of w that holds a quote, a backslash or a control byte: with
// bit 1 changed, quotes and control bytes are the values up to 0x20, found by one
// subtraction. Lanes above the lowest marked one may be marked in error.
func textEnd(w uint64) uint64 {
	return (((w ^ laneOnes*2) - laneOnes*0x21) | ((w ^ laneOnes*'\\') - laneOnes)) &^ w & laneHigh
}

// textEndBits is textEnd for loops: before the bits that say nothing are
// cleared, so that several words can share that step.
func textEndBits(w uint64) uint64 {
	return (((w ^ lanes.bit1) - lanes.upto20) | ((w ^ lanes.slash) - lanes.ones)) &^ w
}

// stringMark marks the lowest lane of w that holds a quote or a backslash.
// Lanes above it may be marked in error.
func stringMark(w uint64) uint64 {
	return (((w ^ laneOnes*'"') - laneOnes) | ((w ^ laneOnes*'\\') - laneOnes)) &^ w & laneHigh
}

// notDigit marks the lowest lane of w that holds no decimal digit. Lanes above
// it may be marked in error.
func notDigit(w uint64) uint64 {
	t := w ^ laneOnes*'0'
	return ((t + laneOnes*(0x80-10)) | t) & laneHigh
}
