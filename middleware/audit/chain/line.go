package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// MaxLine bounds the length of a line, in bytes. A record that would be longer is
// lost.
const MaxLine = 1 << 20

// A Digest is the SHA-256 of a line, its newline included. The first line of a chain
// has the zero Digest in it.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// digestLen is how long a digest is as text.
const digestLen = len(digestPrefix) + 2*sha256.Size

// String returns the digest as in a line: "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// ErrDigest is returned by ParseDigest for a text that is not a digest.
var ErrDigest = errors.New(`a digest is "sha256:" and 64 hexadecimal digits, as "attache audit verify" prints it`)

// ParseDigest reads a digest as String writes it.
func ParseDigest(s string) (d Digest, err error) {
	digits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(digits) != 2*len(d) || digits != strings.ToLower(digits) {
		return Digest{}, ErrDigest
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return Digest{}, ErrDigest
	}
	return d, nil
}

// A tip is where a chain ends: the number of its last line, and its digest. The
// zero tip is that of a chain without lines.
type tip struct {
	seq    uint64
	digest Digest
}

const (
	headSeq  = `{"seq":`
	headPrev = `,"prev":"`
)

// next appends the line that follows t with the members of body, a JSON object with
// at least one, and moves t to it.
func (t *tip) next(dst, body []byte) []byte {
	from := len(dst)
	dst = strconv.AppendUint(append(dst, headSeq...), t.seq+1, 10)
	dst = append(append(dst, headPrev...), digestPrefix...)
	dst = append(hex.AppendEncode(dst, t.digest[:]), `",`...)
	dst = append(append(dst, body[1:]...), '\n')
	*t = tip{t.seq + 1, sha256.Sum256(dst[from:])}
	return dst
}

// lineLen returns the greatest length of the line for a body of n bytes.
func lineLen(n int) int { return n + len(headSeq) + 20 + len(headPrev) + digestLen + 3 }

// A line has the members of a line that chain it to others.
type line struct {
	seq    uint64
	prev   Digest
	digest Digest
}

// parseLine reads a whole line with its newline. ok is false for a text that this
// package never writes.
func parseLine(b []byte) (l line, ok bool) {
	rest, ok := bytes.CutPrefix(b, []byte(headSeq))
	if !ok || len(b) > MaxLine || !bytes.HasSuffix(b, []byte("}\n")) {
		return line{}, false
	}
	digits, rest, ok := bytes.Cut(rest, []byte(headPrev))
	if !ok || len(digits) == 0 || digits[0] < '1' || digits[0] > '9' || len(rest) < digestLen+2 || string(rest[digestLen:digestLen+2]) != `",` {
		return line{}, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return line{}, false
	}
	prev, err := ParseDigest(string(rest[:digestLen]))
	if err != nil || !json.Valid(b) {
		return line{}, false
	}
	return line{seq, prev, sha256.Sum256(b)}, true
}

// Partial describes the part of a line that a process wrote before it died, without a
// newline at its end.
type Partial struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"` // of these bytes, as [Digest.String] writes it
}

// A note is a record of the chain's own.
type note struct {
	Time string `json:"time"`
	Kind string `json:"kind"`
	// Version is that of the format, in the first line of a file.
	Version int `json:"version,omitempty"`
	// ID is random, in the first line of a file: a [Head] names the file by the digest of that
	// line, and two hosts may begin a file in one millisecond.
	ID string `json:"id,omitempty"`
	// After names the file before this one.
	After string `json:"after,omitempty"`
	// Why is for people.
	Why     string   `json:"why,omitempty"`
	Partial *Partial `json:"torn,omitempty"`
	// Records is how many records were lost.
	Records int `json:"records,omitempty"`
	// Was and Is are sizes of a file that has become shorter, in bytes.
	Was int64 `json:"was,omitempty"`
	Is  int64 `json:"is,omitempty"`
}

// Version is the version of the format.
const Version = 1

// The kinds of the chain's own records.
const (
	kindBegin     = "begin"
	kindRepaired  = "repaired"
	kindGap       = "gap"
	kindShortened = "shortened"
)

func (n note) body() []byte {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and numbers cannot fail
	}
	return b
}
