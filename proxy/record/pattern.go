package record

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// The kinds of secrets, for the header.
const (
	nameSecret     = "secret"     // one of Secrets.Values
	nameKey        = "api-key"    // atk_...
	nameCredential = "credential" // found by the name of the member: apiKey, Authorization, password
	nameToken      = "token"      // found by its form: Bearer ..., a JWT, ghp_...
	nameHome       = "home"
	nameHost       = "host"
)

const placeholder = "scrubbed"

// maxPlaceholder is the length in bytes of the longest placeholder. A longer text is replaced even if it begins like
// one. So a text of many placeholders is not read from each of them to its end.
const maxPlaceholder = 64

// placeholderFor returns the replacement of a secret. It returns the text itself if it is a
// placeholder, or a word that cannot be a secret.
func placeholderFor(secret []byte) string {
	switch word := strings.ToLower(string(secret)); {
	case strings.HasPrefix(word, placeholder) && len(word) <= maxPlaceholder, isKeyPlaceholder(word), word == "bearer", word == "basic", word == "null", word == "true", word == "false":
		return string(secret)
	}
	return placeholder
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 // the last: letters that are not ASCII
}

func isKeyPlaceholder(k string) bool {
	return strings.HasPrefix(k, "atk_scrubbed") && len(k) <= maxPlaceholder
}

// ownPatterns is how many of the patterns find attache's own keys and tokens.
const ownPatterns = 2

// A pattern finds secrets by their form. Regular expressions are slow for megabytes of
// text, so re is tried only at anchors.
type pattern struct {
	name    string
	anchors []string       // in lower case; they match in any case
	word    bool           // the anchor must begin a word
	re      *regexp.Regexp // with a group if only a part of a match is the secret
	// barren matches the text that re reads before it fails, in which no match of re begins. It is nil if re
	// fails before the next anchor. Without it, a text of many anchors would be read from each of them to its
	// end.
	barren *regexp.Regexp
}

// The patterns are compiled when they are first needed, not at every start. The first
// ownPatterns of them match credentials for attache itself.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{nameKey, []string{"atk_"}, false, attacheKey(), nil}, // also directly after a word
		{nameToken, []string{"eyj"}, true, // a JWT, also one that is padded, encrypted or truncated
			regexp.MustCompile(`^eyJ[A-Za-z0-9_+/-]{8,}={0,2}(?:\.[A-Za-z0-9_+/-]*={0,2}){1,4}`),
			regexp.MustCompile(`^eyJ[A-Za-z0-9_+/-]*`)},
		{nameToken, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-", "xox", "akia"}, true,
			regexp.MustCompile(`^(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16})`), nil},
		{nameToken, []string{"glpat-", "aiza", "npm_", "hf_", "sk_", "rk_", "lin_api_", "ntn_", "dckr_pat_", "pypi-", "sg."}, true, // GitLab to SendGrid
			regexp.MustCompile(`^(?:glpat-[A-Za-z0-9_.-]{20,}|AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}|` +
				`[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|` +
				`dckr_pat_[A-Za-z0-9_-]{20,}|pypi-AgE[A-Za-z0-9_-]{50,}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})`), nil},
		{nameToken, []string{"bearer", "basic"}, true, bearer(), nil},
		{nameCredential, []string{"://"}, false, regexp.MustCompile(`^://[^/\s:@"\\]+:([^/\s@"\\]+)@`), nil},
		{nameCredential, []string{"-signature=", "?signature=", "&signature=", "?sig=", "&sig="}, false, // of a signed URL
			regexp.MustCompile(`^(?i:-signature|[?&]sig(?:nature)?)=([^\s"'\\&#]{8,})`), nil},
		{nameCredential, []string{"-----begin "}, false,
			regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[^"]*?-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`),
			regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[^"]*`)},
		{nameCredential, []string{"-----begin "}, false, // what follows a key that is cut off may be JSON
			regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?:[^"\\]|\\+[nrt/])*`), nil},
		{nameCredential, []string{"api", "auth", "pass", "client", "secret", "access", "refresh", "token", "private"}, true,
			// In the raw text of a JSON string, quotes follow backslashes.
			regexp.MustCompile(`^(?i:api[-_]?key|authorization|password|passwd|passphrase|client[-_]?secret|secret[-_]?access[-_]?key|secret|access[-_]?token|refresh[-_]?token|token|private[-_]?key)\\*["']?\s*[:=]\s*\\*["']?([^\s"'\\,;&{}\[\]]{4,})`), nil},
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

// keyPattern returns the pattern of attache's keys with another prefix, also truncated
// ones. The prefix may be a common word, so capitals distinguish a key from a tool's name.
func keyPattern(prefix string) pattern {
	return pattern{nameKey, []string{strings.ToLower(prefix) + "_"}, false,
		regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `_[A-Za-z0-9-]+_[A-Z2-7]{8,}`), nil}
}

// replacement returns the text in place of a match of p, whose groups are m.
func (s *Scrubber) replacement(p *pattern, m [][]byte) string {
	switch {
	case p.name == nameKey:
		return s.key(string(m[0]))
	case len(m) == 1:
		return placeholder
	}
	i := bytes.LastIndex(m[0], m[1])
	return string(m[0][:i]) + placeholderFor(m[1]) + string(m[0][i+len(m[1]):])
}

// pattern replaces the secrets that p finds in b.
func (s *Scrubber) pattern(b []byte, p *pattern) []byte {
	a := newAnchors(b, p.anchors)
	var out []byte
	done, barren := 0, 0
	// The search goes on behind a match that was replaced, else at the next anchor.
	for i := a.next(0); i >= 0; i = a.next(max(done, barren, i+1)) {
		if p.word && i > 0 && b[i-1] != '_' && wordByte(b[i-1]) { // an underscore may precede it, as in MY_TOKEN
			continue
		}
		m := p.re.FindSubmatch(b[i:])
		if m == nil && p.barren != nil {
			barren = i + len(p.barren.Find(b[i:]))
		}
		if m == nil || s.prose && p.name == nameCredential && len(m) > 1 && endsLocation(b[:i], m[0]) {
			continue
		}
		if by := s.replacement(p, m); by != string(m[0]) { // a placeholder is no secret that was found
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

// endsLocation reports whether match, together with the text before it, is the end of an absolute
// path, or of the key of a header in the configuration, followed by a colon and a word.
func endsLocation(before, match []byte) bool {
	// Without this check, the search below could go back over all matches before: they may have no space.
	if !bytes.Contains(match, []byte(": ")) {
		return false
	}
	start := bytes.LastIndexAny(before, " \t\n\"'=?&") + 1
	return location().Match(before[start:])
}

var location = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/|[A-Za-z]:\\|server\.headers\.)`)
})

// anchors finds the next of several texts. It searches each byte once per text.
type anchors struct {
	lower []byte
	texts []string
	at    []int // the next offset of each text, -1 if there is none
}

func newAnchors(b []byte, texts []string) *anchors {
	a := &anchors{lower: lower(b), texts: texts, at: make([]int, len(texts))}
	for i, text := range texts {
		a.at[i] = bytes.Index(a.lower, []byte(text))
	}
	return a
}

// next returns the offset of the first text at or after from, -1 for none.
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

// lower returns b with its ASCII letters in lower case, which keeps the offsets.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}
