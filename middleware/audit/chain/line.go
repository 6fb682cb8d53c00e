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

// MaxLine bounds the length of a line, in bytes. A longer record is lost.
const MaxLine = 1 << 20

// A Digest is the SHA-256 of a line with its newline. The first line of a chain contains
// the zero Digest.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// digestLen is the length of a digest as text.
const digestLen = len(digestPrefix) + 2*sha256.Size

// String returns the digest as lines contain it: "sha256:" and 64 hexadecimal digits.
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

// A tip is the end of a chain: the number of its last line, and its digest. The
// zero tip is the end of a chain without lines.
type tip struct {
	seq    uint64
	digest Digest
}

const (
	headSeq  = `{"seq":`
	headPrev = `,"prev":"`
)

// next appends the line after t to dst, with the members of body, a JSON object that is not
// empty. It sets t to the new line.
func (t *tip) next(dst, body []byte) []byte {
	from := len(dst)
	dst = strconv.AppendUint(append(dst, headSeq...), t.seq+1, 10)
	dst = append(append(dst, headPrev...), digestPrefix...)
	dst = append(hex.AppendEncode(dst, t.digest[:]), `",`...)
	dst = append(append(dst, body[1:]...), '\n')
	*t = tip{t.seq + 1, sha256.Sum256(dst[from:])}
	return dst
}

// isRecord reports whether body is a JSON object on one line with at least one member. A verifier
// refuses anything else. The syntax of the members is not checked.
func isRecord(body []byte) bool {
	n := len(body)
	return n > 2 && body[0] == '{' && body[n-1] == '}' && len(bytes.TrimSpace(body[1:n-1])) > 0 && bytes.IndexByte(body, '\n') < 0
}

// lineLen returns the greatest length of the line for a body of n bytes.
func lineLen(n int) int { return n + len(headSeq) + 20 + len(headPrev) + digestLen + 3 }

// A line has the members of a line that link it to others, and its digest.
type line struct {
	seq    uint64
	prev   Digest
	digest Digest
}

// parseLine parses a complete line with its newline. ok is false if this package does not
// write such a line.
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

// Partial describes the part of a line that a process wrote before it died, without its
// newline.
type Partial struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"` // of these bytes, as [Digest.String] writes it
}

// A note is a record that this package writes.
type note struct {
	Time string `json:"time"`
	Kind string `json:"kind"`
	// Version is the version of the format, in the first line of a file.
	Version int `json:"version,omitempty"`
	// ID is random, in the first line of a file: its digest identifies the file in a [Head], and
	// two hosts may create a file in the same millisecond.
	ID string `json:"id,omitempty"`
	// After is the name of the file before this one.
	After string `json:"after,omitempty"`
	// Why is for people.
	Why     string   `json:"why,omitempty"`
	Partial *Partial `json:"torn,omitempty"`
	// Records is the number of lost records.
	Records int `json:"records,omitempty"`
	// Was and Is are the sizes of a file that has become shorter, in bytes.
	Was int64 `json:"was,omitempty"`
	Is  int64 `json:"is,omitempty"`
}

// Version is the version of the format.
const Version = 1

// The kinds of notes.
const (
	kindBegin     = "begin"
	kindRepaired  = "repaired"
	kindGap       = "gap"
	kindShortened = "shortened"
)

func (n note) body() []byte {
	b, _ := json.Marshal(n) // never fails for strings and numbers
	return b
}
