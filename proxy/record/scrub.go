package record

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Secrets are the texts that must not reach the disk, in addition to what looks like a secret.
type Secrets struct {
	// Values are secrets such as the API key in use.
	Values []string
	// KeyPrefix is another prefix of attache's keys than atk; "" for none.
	KeyPrefix string
	// Later, if not nil, returns the secrets that have become known since the session began.
	// It never changes a slice that it has returned: for more secrets it returns a new one.
	Later func() []string
	// Home is the user's home directory, Host the name of this machine.
	Home, Host string
	// Prose means that lines may be messages of attache. These name a file
	// ("/run/token: ...") or a header in the configuration ("server.headers.Authorization: ..."),
	// and the text after it, which describes a problem, is not a secret.
	Prose bool
}

var allNames = []string{nameKey, nameCredential, nameHome, nameHost, nameSecret, nameToken}

// A Scrubber replaces secrets in lines by placeholders. The same secret always gets the
// same placeholder, and scrubbing a line again does not change it. A Scrubber may be used
// from several goroutines.
type Scrubber struct {
	literals  []literal
	later     func() []string
	prefix    string    // of keys, if it is not atk
	keyForm   []pattern // the pattern of keys with that prefix, or none
	knownOnly bool      // replaces only known secrets and attache's own keys and tokens
	prose     bool      // Secrets.Prose

	mu    sync.Mutex
	seen  *string         // the first value that later returned for more
	more  []literal       // the secrets that later returned
	found map[string]bool // kinds
	keys  map[string]int  // attache keys and the numbers of their placeholders
}

type literal struct {
	name     string
	text, by []byte
	path     bool // only at the beginning of a path, and up to the end of a path element
	word     bool // only as a whole word
}

// minSecret is the minimum length of a secret in Secrets: a shorter text may be a part of
// ordinary words.
const minSecret = 6

// NewScrubber returns a Scrubber for the secrets.
func NewScrubber(s Secrets) *Scrubber {
	out := &Scrubber{later: s.Later, prose: s.Prose, found: map[string]bool{}, keys: map[string]int{}}
	if s.KeyPrefix != "" && s.KeyPrefix != "atk" {
		out.prefix, out.keyForm = s.KeyPrefix, []pattern{keyPattern(s.KeyPrefix)}
	}
	out.literals = secretLiterals(s.Values, "scrubbed-secret-%d")
	if home := strings.TrimRight(s.Home, `/\`); len(home) > 1 { // not the root, with which every path begins
		by := "/home/user"
		if strings.Contains(home, `\`) {
			by = `C:\Users\user`
		}
		if home != by {
			out.literals = append(out.literals, literal{name: nameHome, text: []byte(home), by: []byte(by), path: true})
		}
	}
	if len(s.Host) > 3 && s.Host != "localhost" && s.Host != "host" {
		out.literals = append(out.literals, literal{name: nameHost, text: []byte(s.Host), by: []byte("host"), word: true})
	}
	return out
}

// secretLiterals returns literals that replace each value by a placeholder with its number.
func secretLiterals(values []string, placeholder string) (all []literal) {
	for i, v := range values {
		// A key is found by its pattern, whose placeholder has the form of a key.
		if len(v) >= minSecret && !attacheKey().MatchString(v) {
			all = append(all, literal{name: nameSecret, text: []byte(v), by: fmt.Appendf(nil, placeholder, i+1)})
		}
	}
	return all
}

// laterLiterals returns literals for the secrets that Secrets.Later returns.
func (s *Scrubber) laterLiterals() []literal {
	if s.later == nil {
		return nil
	}
	values := s.later()
	if len(values) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Later returns another slice when there are more secrets, so its address tells.
	if s.seen != &values[0] {
		s.seen, s.more = &values[0], secretLiterals(values, "scrubbed-token-%d")
	}
	return s.more
}

// NewKnownScrubber returns a Scrubber that replaces only these values, and credentials
// of attache itself: its keys, and any JWT, because the tokens in use are renewed during
// a session. It does not replace other texts that look like secrets or have their names.
func NewKnownScrubber(s Secrets) *Scrubber {
	out := NewScrubber(Secrets{Values: s.Values, Later: s.Later, KeyPrefix: s.KeyPrefix})
	out.knownOnly = true
	return out
}

// clean reports whether a line certainly contains no secret, if s replaces only known secrets.
// Most lines are clean, and this check is faster than the search for secrets.
func (s *Scrubber) clean(line []byte) bool {
	if !s.knownOnly || containsRare(line, "atk", '_') || containsRare(line, "ey", 'J') || bytes.IndexByte(line, '\\') >= 0 {
		return false
	}
	if s.prefix != "" && containsRare(line, s.prefix, '_') {
		return false
	}
	has := func(l literal) bool { return bytes.Contains(line, l.text) }
	return !slices.ContainsFunc(s.literals, has) && !slices.ContainsFunc(s.laterLiterals(), has)
}

// containsRare reports whether line contains the text before, followed by the byte last. It
// searches for last, which is rare in lines: that is faster than searching for the whole text.
func containsRare(line []byte, before string, last byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], last)
		if i < 0 {
			return false
		}
		if at += i; at >= len(before) && string(line[at-len(before):at]) == before {
			return true
		}
	}
}

// Found returns the kinds of secrets that were replaced so far, sorted. It never returns nil.
func (s *Scrubber) Found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.AppendSeq([]string{}, maps.Keys(s.found))
	slices.Sort(names)
	return names
}

func (s *Scrubber) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[name] = true
}

// Line returns the line without secrets. It returns the same slice if there were none.
func (s *Scrubber) Line(line []byte) []byte {
	if s.clean(line) {
		return line
	}
	return s.content(line, maxLayers)
}

// maxLayers is how many layers of escapes are removed in the search for secrets: those of
// a JSON string, of JSON within its text, and so on.
const maxLayers = 8

// text scrubs the raw bytes of a string, or of a line that is not JSON.
func (s *Scrubber) text(b []byte) []byte {
	// Known secrets come first: if a pattern replaced a part of one, the rest would not be found.
	for _, l := range slices.Concat(s.literals, s.laterLiterals()) {
		b = s.literal(b, l)
	}
	all := patterns()
	if s.knownOnly {
		all = all[:ownPatterns]
	}
	for _, p := range s.keyForm {
		b = s.pattern(b, &p)
	}
	for _, p := range all {
		b = s.pattern(b, &p)
	}
	return b
}

func (s *Scrubber) literal(b []byte, l literal) []byte {
	if !bytes.Contains(b, l.text) {
		return b
	}
	var out []byte
	for {
		i := bytes.Index(b, l.text)
		if i < 0 {
			return append(out, b...)
		}
		end := i + len(l.text)
		by := l.by
		if l.part(out, b, i, end) {
			by = l.text
		} else {
			s.note(l.name)
		}
		out = append(append(out, b[:i]...), by...)
		b = b[end:]
	}
}

// part reports whether the text found at b[i:end] is a part of another word or path.
func (l *literal) part(out, b []byte, i, end int) bool {
	switch {
	case l.path:
		return inPath(out, b[:i]) || end < len(b) && wordByte(b[end])
	case l.word:
		return i > 0 && wordByte(b[i-1]) || end < len(b) && wordByte(b[end])
	}
	return false
}

// inPath reports whether a path that follows these bytes is in the middle of another path.
func inPath(out, b []byte) bool {
	// Nothing of the rest precedes the path, so the byte before it is the last one that was copied.
	if len(b) == 0 {
		b = out
	}
	if len(b) == 0 {
		return false
	}
	c := b[len(b)-1]
	return wordByte(c) || c == '-' || c == '.'
}

const (
	// maxKeys is how many keys get placeholders of their own, so that peers cannot fill the memory with
	// texts that look like keys.
	maxKeys = 1000
	// maxKey is the length in bytes of the longest of them.
	maxKey = 128
)

// key returns the placeholder of an attache key. It has the form of a key, but is not one.
func (s *Scrubber) key(k string) string {
	if isKeyPlaceholder(k) {
		return k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.keys[k]
	if !ok && len(s.keys) < maxKeys && len(k) <= maxKey {
		n = len(s.keys) + 1
		s.keys[k] = n
	}
	return fmt.Sprintf("atk_scrubbed%d_%s", n, strings.Repeat("0", 32)) // 0 for those without their own
}
