package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Secrets say what must not reach the disk, beside what can be told by its looks.
type Secrets struct {
	// Values are secrets by their text, such as the API key in use.
	Values []string
	// KeyPrefix is what attache's keys begin with beside atk; "" for nothing else.
	KeyPrefix string
	// Later, if not nil, returns more secrets, which become known while the session goes
	// on. What it has returned is not changed: more secrets are another slice.
	Later func() []string
	// Home is the user's home directory, Host the name of this machine.
	Home, Host string
	// Prose says that the lines may be messages of attache's own. These name a file
	// ("/run/token: ...") or a header in the configuration ("server.headers.Authorization: ..."),
	// and then say what is wrong with it: that is no secret.
	Prose bool
}

// The names of what is replaced, for a header.
const (
	nameSecret     = "secret"     // one of Secrets.Values
	nameKey        = "api-key"    // atk_...
	nameCredential = "credential" // by the member's name: apiKey, Authorization, password
	nameToken      = "token"      // by its looks: Bearer ..., a JWT, ghp_...
	nameHome       = "home"
	nameHost       = "host"
)

var allNames = []string{nameKey, nameCredential, nameHome, nameHost, nameSecret, nameToken}

// A Scrubber replaces secrets in lines by placeholders: the same secret by the
// same placeholder each time. What it has scrubbed it leaves as it is. It may be
// used from several goroutines.
type Scrubber struct {
	literals []literal
	later    func() []string
	prefix   string    // of keys, if it is another than atk
	keyForm  []pattern // the one of keys with that prefix, or none
	told     bool      // only what it was told of, and attache's own keys and tokens
	prose    bool      // Secrets.Prose

	mu    sync.Mutex
	seen  *string           // the first of the values in more
	more  []literal         // secrets that have become known since
	found map[string]bool   // names
	keys  map[string]string // attache keys and their placeholders
}

// A literal is a text that is replaced wherever it stands.
type literal struct {
	name     string
	text, by []byte
	path     bool // a path: only where one begins, and where its last part ends
	word     bool // only between bytes that are no word's
}

// minSecret is how long a named secret has to be: a shorter one would be found in
// the middle of words.
const minSecret = 6

// NewScrubber returns a Scrubber for the secrets.
func NewScrubber(s Secrets) *Scrubber {
	out := &Scrubber{later: s.Later, prose: s.Prose, found: map[string]bool{}, keys: map[string]string{}}
	if s.KeyPrefix != "" && s.KeyPrefix != "atk" {
		out.prefix, out.keyForm = s.KeyPrefix, []pattern{keyPattern(s.KeyPrefix)}
	}
	out.literals = secretLiterals(s.Values, "scrubbed-secret-%d")
	if home := strings.TrimRight(s.Home, `/\`); len(home) > 1 {
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

// secretLiterals returns what replaces each value by a placeholder with its number.
func secretLiterals(values []string, placeholder string) (all []literal) {
	for i, v := range values {
		if len(v) >= minSecret && !attacheKey().MatchString(v) {
			all = append(all, literal{name: nameSecret, text: []byte(v), by: fmt.Appendf(nil, placeholder, i+1)})
		}
	}
	return all
}

// laterLiterals returns what replaces the secrets that have become known since.
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
	if s.seen != &values[0] {
		s.seen, s.more = &values[0], secretLiterals(values, "scrubbed-token-%d")
	}
	return s.more
}

// NewToldScrubber returns a Scrubber that replaces these values, and what can
// identify somebody to attache: its keys, and any JWT, as those in use are renewed
// while it is. It leaves what else has the looks or the name of a secret.
func NewToldScrubber(s Secrets) *Scrubber {
	out := NewScrubber(Secrets{Values: s.Values, Later: s.Later, KeyPrefix: s.KeyPrefix})
	out.told = true
	return out
}

// idle reports whether a line has none of the secrets that s was told of, where
// they are all that counts. Most lines have none, so it is worth a quick look.
func (s *Scrubber) idle(line []byte) bool {
	if !s.told || ends(line, "atk", '_') || ends(line, "ey", 'J') || bytes.IndexByte(line, '\\') >= 0 {
		return false
	}
	if s.prefix != "" && ends(line, s.prefix, '_') {
		return false
	}
	has := func(l literal) bool { return bytes.Contains(line, l.text) }
	return !slices.ContainsFunc(s.literals, has) && !slices.ContainsFunc(s.laterLiterals(), has)
}

// ends reports whether last stands in line behind the text before. It looks for the
// byte that is rarest in what is scrubbed, which is faster than looking for the
// whole.
func ends(line []byte, before string, last byte) bool {
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

// Found returns the names of what has been replaced so far, in order.
func (s *Scrubber) Found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for name := range s.found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *Scrubber) note(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[name] = true
}

// Line returns the line without secrets. It is the same slice if there were none.
func (s *Scrubber) Line(line []byte) []byte {
	if s.idle(line) {
		return line
	}
	return s.content(line, maxLayers)
}

// maxLayers is how many layers of escapes a secret is looked for behind: that of a
// JSON string, of JSON in its text, and some more.
const maxLayers = 8

// content returns b without secrets: a line, or the text of a JSON string, which may
// be JSON again, or have a part of some in it. It is the same slice if there were none.
func (s *Scrubber) content(b []byte, layers int) []byte {
	if !json.Valid(b) {
		b = s.text(b)
		if !json.Valid(b) {
			return s.behindEscapes(b, layers)
		}
		// What made it no JSON stood in a secret: now it has members to look at.
	}
	w := walk{s: s, in: b, layers: layers}
	w.run()
	if !w.changed {
		return b
	}
	return w.out
}

// behindEscapes returns b, or b without its escapes and without secrets if one was
// behind them.
func (s *Scrubber) behindEscapes(b []byte, layers int) []byte {
	if layers == 0 || bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	text := unescaped(b)
	if bytes.Equal(text, b) {
		return b
	}
	if scrubbed := s.content(text, layers-1); !bytes.Equal(scrubbed, text) {
		return scrubbed
	}
	return b
}

// unescaped returns b, which need not be a JSON string, without the escapes of one,
// but for those of control characters.
func unescaped(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		switch next := b[i+1]; next {
		case '"', '\\', '/':
			out = append(out, next)
			i++
		case 'u':
			r, err := strconv.ParseUint(string(b[i+2:min(i+6, len(b))]), 16, 16)
			if err != nil || i+6 > len(b) || r < ' ' {
				out = append(out, b[i])
				continue
			}
			out = utf8.AppendRune(out, rune(r))
			i += 5
		default:
			out = append(out, b[i])
		}
	}
	return out
}

// text scrubs the raw bytes of a string, or of a line that is no JSON.
func (s *Scrubber) text(b []byte) []byte {
	for _, l := range slices.Concat(s.literals, s.laterLiterals()) {
		b = s.literal(b, l)
	}
	all := patterns()
	if s.told {
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

const placeholder = "scrubbed"

// keep returns what a secret is replaced by: itself if it is a placeholder, or a
// word that says what follows.
func keep(secret []byte) string {
	switch word := strings.ToLower(string(secret)); {
	case strings.HasPrefix(word, placeholder), isKeyPlaceholder(word), word == "bearer", word == "basic", word == "null", word == "true", word == "false":
		return string(secret)
	}
	return placeholder
}

// literal replaces a text.
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

// part reports whether the text found at b[i:end] is a part of something else.
func (l *literal) part(out, b []byte, i, end int) bool {
	switch {
	case l.path:
		return inPath(out, b[:i]) || end < len(b) && wordByte(b[end])
	case l.word:
		return i > 0 && wordByte(b[i-1]) || end < len(b) && wordByte(b[end])
	}
	return false
}

// inPath reports whether a path that begins behind these bytes is the middle of
// another.
func inPath(out, b []byte) bool {
	if len(b) == 0 {
		b = out
	}
	if len(b) == 0 {
		return false
	}
	c := b[len(b)-1]
	return wordByte(c) || c == '-' || c == '.'
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// key returns the placeholder of an attache key: a key by its form, that nobody
// was ever given.
func (s *Scrubber) key(k string) string {
	if isKeyPlaceholder(k) {
		return k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	by, ok := s.keys[k]
	if !ok {
		by = fmt.Sprintf("atk_scrubbed%d_%s", len(s.keys)+1, strings.Repeat("0", 32))
		s.keys[k] = by
	}
	return by
}

func isKeyPlaceholder(k string) bool { return strings.HasPrefix(k, "atk_scrubbed") }

// CredentialName reports whether what has that name is a credential: a member of
// a frame, a header, an environment variable. Case, prefix and the way the words
// are joined do not matter.
func CredentialName(name string) bool {
	if i := strings.LastIndexAny(name, "/."); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(name)
	if words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }); len(words) > 1 && words[len(words)-1] == "token" {
		return !slices.Contains(cursorWords, words[len(words)-2])
	}
	name = strings.ReplaceAll(strings.ReplaceAll(name, "-", ""), "_", "")
	for _, end := range []string{"apikey", "authorization", "password", "passwd", "secret", "accesstoken", "refreshtoken", "authtoken", "bearertoken", "idtoken", "privatekey", "secretkey", "cookie"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return name == "token"
}

// cursorWords make a token one that says where to go on, and nothing secret.
var cursorWords = []string{"progress", "page", "next", "continuation", "sync", "cancel", "cancellation"}
