package jsonstring

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SameName implements wire.SameName.
func SameName(name []byte, known string) bool {
	if len(name) > 0 && isVisible(name[0]) && len(known) > 0 && isVisible(known[0]) && lower(name[0]) != lower(known[0]) {
		return false // most names: a visible ASCII byte is the first letter of its name
	}
	n, k := letters{rest: name}, letters{rest: []byte(known)}
	for {
		switch r := n.next(); {
		case r != k.next():
			return false
		case r == noLetter:
			return true
		}
	}
}

// Mentions implements wire.Mentions.
func Mentions(frame []byte, name string) bool {
	known := letters{rest: []byte(name)}
	first := known.next()
	for i, c := range frame {
		// The name can begin here with its first letter, with an escape, or with a rune that is not
		// ASCII and folds to it. Bytes inside an escape or a rune are tried too: at worst a name is
		// found that is not there, and the frame is refused.
		if c < utf8.RuneSelf && c != '\\' && rune(lower(c)) != first {
			continue
		}
		l := letters{rest: frame[i:], escaped: true}
		// A row of invisible characters is not read once for each of them.
		if r, _ := l.rune(); !isInvisible(r) && l.next() == first && beginsWith(l, known) {
			return true
		}
	}
	return false
}

// beginsWith reports whether the letters of name are the first that l yields.
func beginsWith(l, name letters) bool {
	for {
		switch r := name.next(); {
		case r == noLetter:
			return true
		case r != l.next():
			return false
		}
	}
}

// letters yields the letters of a name that [SameName] compares. It is copied to go on from one place
// twice.
type letters struct {
	rest    []byte
	escaped bool   // rest is the inside of a JSON string
	folded  string // what is left of the letters that the last rune folds to
}

const noLetter rune = -1

// next returns the next letter, noLetter after the last. A rune that folds to several letters is replaced
// by them, one a call.
func (l *letters) next() rune {
	for l.folded == "" && len(l.rest) > 0 {
		r, n := l.rune()
		l.rest = l.rest[n:]
		switch {
		case isInvisible(r):
		case r < utf8.RuneSelf:
			return rune(lower(byte(r)))
		default:
			if l.folded = fullFold(r); l.folded == "" {
				return simpleFold(r)
			}
		}
	}
	if l.folded == "" {
		return noLetter
	}
	r, n := utf8.DecodeRuneInString(l.folded)
	l.folded = l.folded[n:]
	return simpleFold(r) // a letter of a full folding may have other cases, as ι has
}

// rune returns the first rune of rest, and how many bytes it has. rest is not empty. An escape that is
// not complete counts as one rune.
func (l *letters) rune() (r rune, n int) {
	in := l.rest
	if !l.escaped || len(in) < 2 || in[0] != '\\' {
		return utf8.DecodeRune(in)
	}
	switch in[1] {
	case 'u':
		r, n = UnescapeRune(in[2:])
		return r, 2 + n
	case 'b', 'f', 'n', 'r', 't':
		return ' ', 2
	}
	return rune(in[1]), 2
}

// isVisible reports whether c is ASCII and no blank or control character.
func isVisible(c byte) bool { return ' ' < c && c < 0x7f }

// isInvisible reports whether some reader trims or drops r: blanks, control and
// format characters, and the dot above, which a dotted capital i leaves when it
// is made lower case.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return !isVisible(byte(r))
	}
	return r == '\u0307' ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// simpleFold returns one rune for all those that differ in letter case alone.
func simpleFold(r rune) rune {
	// Unicode's simple folding keeps both apart from i, but Java and Python turn them into an i or I when
	// they change the case.
	if r == 'ı' || r == 'İ' {
		return 'i'
	}
	// SimpleFold goes through the runes that are equal but for their case, and back to r.
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	if first < utf8.RuneSelf { // the least is a capital, but letters of ASCII are compared as small ones
		return rune(lower(byte(first)))
	}
	return first
}

// fullFold returns the letters that r folds to if there are more than one, ""
// for other runes: status F of Unicode's CaseFolding.txt.
func fullFold(r rune) string {
	// Greek letters with an iota below, in three rows of eight small letters and their capitals. Each
	// stands for the letter without the iota, and the iota.
	if 'ᾀ' <= r && r <= 'ᾯ' {
		return string([]rune{[...]rune{'ἀ', 'ἠ', 'ὠ'}[(r-'ᾀ')/16] + (r-'ᾀ')%8, 'ι'})
	}
	if r > 'և' && r < 'ẖ' || r > 'ῼ' && r < 'ﬀ' || r > 'ﬗ' {
		return "" // most letters; fullFolds has none of them
	}
	_, after, _ := strings.Cut(fullFolds, " "+string(r)+"=")
	to, _, _ := strings.Cut(after, " ")
	return to
}

// fullFolds has, after a blank each, a rune, an equals sign and the letters that it folds to.
const fullFolds = " ß=ss ŉ=ʼn ǰ=j\u030c ΐ=ι\u0308\u0301 ΰ=υ\u0308\u0301 և=եւ ẖ=h\u0331 ẗ=t\u0308 ẘ=w\u030a" +
	" ẙ=y\u030a ẚ=aʾ ẞ=ss ὐ=υ\u0313 ὒ=υ\u0313\u0300 ὔ=υ\u0313\u0301 ὖ=υ\u0313\u0342 ᾲ=ὰι ᾳ=αι" +
	" ᾴ=άι ᾶ=α\u0342 ᾷ=α\u0342ι ᾼ=αι ῂ=ὴι ῃ=ηι ῄ=ήι ῆ=η\u0342 ῇ=η\u0342ι ῌ=ηι ῒ=ι\u0308\u0300" +
	" \u1fd3=ι\u0308\u0301 ῖ=ι\u0342 ῗ=ι\u0308\u0342 ῢ=υ\u0308\u0300 \u1fe3=υ\u0308\u0301 ῤ=ρ\u0313" +
	" ῦ=υ\u0342 ῧ=υ\u0308\u0342 ῲ=ὼι ῳ=ωι ῴ=ώι ῶ=ω\u0342 ῷ=ω\u0342ι ῼ=ωι ﬀ=ff ﬁ=fi ﬂ=fl ﬃ=ffi" +
	" ﬄ=ffl ﬅ=st ﬆ=st ﬓ=մն ﬔ=մե ﬕ=մի ﬖ=վն ﬗ=մխ "

// Fold returns the letters of name that [SameName] compares.
func Fold(name string) string {
	l := letters{rest: []byte(name)}
	out := make([]rune, 0, len(name))
	for r := l.next(); r != noLetter; r = l.next() {
		out = append(out, r)
	}
	return string(out)
}
