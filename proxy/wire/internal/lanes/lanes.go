// Package lanes has what scans of JSON need to read eight bytes at a time, as the lanes of a word:
// the lowest address is in the lowest lane, and a lane is marked by its high bit.
package lanes

import "encoding/binary"

// High has the bit in each lane that marks it.
const High = 0x8080808080808080

const (
	ones = 0x0101010101010101
	low  = 0x7f7f7f7f7f7f7f7f
)

// Vars has words with the same byte in all lanes. They are variables because a loop keeps variables
// in registers: with constants, which the compiler makes again at each use, the loop that skips values
// is a fifth slower. They never change.
var Vars = struct{ Ones, High, Low, Quote, Slash, Open, Close, Bit5, bit1, upto20 uint64 }{
	ones, High, low, ones * '"', ones * '\\', ones * '{', ones * '}', ones * 0x20, ones * 2, ones * 0x21,
}

// Word returns the eight bytes from offset i, which must be there.
func Word(b []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(b[i : i+8 : i+8])
}

// TextEnd marks the lowest lane of w that holds a quote, a backslash or a control byte: with
// bit 1 changed, quotes and control bytes are the values up to 0x20, found by one
// subtraction. Lanes above the lowest marked one may be marked in error.
func TextEnd(w uint64) uint64 {
	return (((w ^ ones*2) - ones*0x21) | ((w ^ ones*'\\') - ones)) &^ w & High
}

// TextEndBits is TextEnd for loops: before the bits that say nothing are
// cleared, so that several words can share that step.
func TextEndBits(w uint64) uint64 {
	return (((w ^ Vars.bit1) - Vars.upto20) | ((w ^ Vars.Slash) - Vars.Ones)) &^ w
}

// StringMark marks the lowest lane of w that holds a quote or a backslash.
// Lanes above it may be marked in error.
func StringMark(w uint64) uint64 {
	return (((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones)) &^ w & High
}

// NotDigit marks the lowest lane of w that holds no decimal digit. Lanes above
// it may be marked in error.
func NotDigit(w uint64) uint64 {
	t := w ^ ones*'0'
	return ((t + ones*(0x80-10)) | t) & High
}
