package record

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// ownPatterns is how many of the patterns find keys and tokens of attache's own.
const ownPatterns = 2

// A pattern finds secrets by their looks. Regular expressions are slow over
// megabytes, so one is tried only where an anchor stands.
type pattern struct {
	name    string
	anchors []string // in lower case; found in any case
	word    bool     // the anchor begins a word
	re      *regexp.Regexp
	by      func(s *Scrubber, groups [][]byte) string
}

// The patterns are compiled when the first one is needed, not at every start.
// The first ownPatterns of them are of what identifies somebody to attache.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{nameKey, []string{"atk_"}, false, attacheKey(), // a key glued to a word is one still
			func(s *Scrubber, m [][]byte) string { return s.key(string(m[0])) }},
		{nameToken, []string{"eyj"}, true, // a JWT, also one that is padded, encrypted or cut off
			regexp.MustCompile(`^eyJ[A-Za-z0-9_+/-]{8,}={0,2}(?:\.[A-Za-z0-9_+/-]*={0,2}){1,4}`),
			func(*Scrubber, [][]byte) string { return placeholder }},
		{nameToken, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-", "xox", "akia"}, true,
			regexp.MustCompile(`^(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16})`),
			func(*Scrubber, [][]byte) string { return placeholder }},
		{nameToken, []string{"bearer", "basic"}, true, bearer(), keepAround},
		{nameCredential, []string{"://"}, false, regexp.MustCompile(`^://[^/\s:@"\\]+:([^/\s@"\\]+)@`), keepAround},
		{nameCredential, []string{"api", "auth", "passw", "client", "secret", "access", "refresh", "token", "private"}, true,
			// In the raw text of a JSON string backslashes stand before quotes.
			regexp.MustCompile(`^(?i:api[-_]?key|authorization|password|passwd|client[-_]?secret|secret|access[-_]?token|refresh[-_]?token|token|private[-_]?key)\\*["']?\s*[:=]\s*\\*["']?([^\s"'\\,;&{}\[\]]{4,})`),
			keepAround},
	}
})

var (
	attacheKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^atk_[A-Za-z0-9-]+_[A-Za-z0-9_-]{8,}`)
	})
	bearer = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:bearer|basic) +([A-Za-z0-9._~+/=-]{8,})`)
	})
)

// keyPattern finds attache's keys of another prefix, also where their end was cut
// off. The prefix may be a common word: the capitals tell a key from a tool's name.
func keyPattern(prefix string) pattern {
	return pattern{nameKey, []string{strings.ToLower(prefix) + "_"}, false,
		regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `_[A-Za-z0-9-]+_[A-Z2-7]{8,}`),
		func(s *Scrubber, m [][]byte) string { return s.key(string(m[0])) }}
}

// keepAround replaces the one group, which is the secret, and keeps the rest.
func keepAround(_ *Scrubber, m [][]byte) string {
	i := bytes.LastIndex(m[0], m[1])
	return string(m[0][:i]) + keep(m[1]) + string(m[0][i+len(m[1]):])
}

// pattern replaces what p finds in b.
func (s *Scrubber) pattern(b []byte, p *pattern) []byte {
	a := newAnchors(b, p.anchors)
	var out []byte
	done := 0
	for i := a.next(0); i >= 0; i = a.next(max(done, i+1)) {
		if p.word && i > 0 && b[i-1] != '_' && wordByte(b[i-1]) {
			continue
		}
		m := p.re.FindSubmatch(b[i:])
		if m == nil || s.prose && p.name == nameCredential && isPlace(b[:i], m[0]) {
			continue
		}
		if by := p.by(s, m); by != string(m[0]) {
			s.note(p.name)
			out = append(append(out, b[done:i]...), by...)
			done = i + len(m[0])
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// isPlace reports whether what was found, with the text before it, is the end of an absolute path
// or of a header's key in the configuration, and then a colon and a word.
func isPlace(before, found []byte) bool {
	start := bytes.LastIndexAny(before, " \t\n\"'=?&") + 1
	return bytes.Contains(found, []byte(": ")) && place().Match(before[start:])
}

var place = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/|[A-Za-z]:\\|server\.headers\.)`)
})

// anchors finds the next of several texts, looking at each byte once for each.
type anchors struct {
	lower []byte
	texts []string
	at    []int // the next offset of each text, -1 when there is no further
}

func newAnchors(b []byte, texts []string) *anchors {
	a := &anchors{lower: lower(b), texts: texts, at: make([]int, len(texts))}
	for i, text := range texts {
		a.at[i] = bytes.Index(a.lower, []byte(text))
	}
	return a
}

// next returns the offset of the first text at from or behind it, -1 for none.
func (a *anchors) next(from int) int {
	first := -1
	for i, text := range a.texts {
		if a.at[i] >= 0 && a.at[i] < from {
			if k := bytes.Index(a.lower[from:], []byte(text)); k >= 0 {
				a.at[i] = from + k
			} else {
				a.at[i] = -1
			}
		}
		if a.at[i] >= 0 && (first < 0 || a.at[i] < first) {
			first = a.at[i]
		}
	}
	return first
}

// lower returns b with its ASCII letters in lower case; offsets stay.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}
