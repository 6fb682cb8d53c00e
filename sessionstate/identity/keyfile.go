package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// maxWordBytes bounds a role, a permission and the other words of an entry.
const maxWordBytes = 1024

// header begins a new key file.
const header = "# API keys of attache: their hashes, not the keys. Change it with attache key create and revoke.\n"

// keysYAML is the shape of the file.
type keysYAML struct {
	Keys []keyYAML `yaml:"keys"`
}

type keyYAML struct {
	ID      word      `yaml:"id"`
	SHA256  word      `yaml:"sha256"`
	Owner   ownerYAML `yaml:",inline"`
	Created word      `yaml:"created,omitempty"`
	Expires word      `yaml:"expires,omitempty"`
	Revoked word      `yaml:"revoked,omitempty"`
}

// ownerYAML is the part about a person that key files and session files share.
type ownerYAML struct {
	User        word   `yaml:"user,omitempty"`
	Tenant      word   `yaml:"tenant,omitempty"`
	Email       word   `yaml:"email,omitempty"`
	Roles       []word `yaml:"roles,omitempty,flow"`
	Permissions []word `yaml:"permissions,omitempty,flow"`
	Plan        word   `yaml:"plan,omitempty"`
	Scope       word   `yaml:"scope,omitempty"`
	Trust       word   `yaml:"trust,omitempty"`
}

func (w ownerYAML) attributes() Attributes {
	return Attributes{
		User: w.User.text, Tenant: w.Tenant.text, Email: w.Email.text, Roles: texts(w.Roles), Permissions: texts(w.Permissions),
		Plan: w.Plan.text, Scope: w.Scope.text, Trust: w.Trust.text,
	}
}

const knownKeys = "id, sha256, user, tenant, email, roles, permissions, plan, scope, trust, created, expires, revoked"

// word is a string in the file with its place.
type word struct {
	text string
	at   *token.Token
}

// UnmarshalYAML reads a string of one line. It refuses numbers: the value that YAML gives 007
// surprises people.
func (w *word) UnmarshalYAML(n ast.Node) error {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return textfile.ErrorAt(n.GetToken(), "text is expected here: put it in quotes")
	}
	if !isWord(s.Value) {
		return textfile.ErrorAt(n.GetToken(), "has line breaks, control characters, invalid characters, or space around it: take them out")
	}
	w.text, w.at = s.Value, n.GetToken()
	return nil
}

// MarshalYAML writes the string, in quotes unless it is plain. The library itself would not
// quote .inf.
func (w word) MarshalYAML() ([]byte, error) {
	if isPlain(w.text) {
		return []byte(w.text), nil
	}
	return []byte(strconv.Quote(w.text)), nil
}

// isPlain reports whether every YAML parser reads s without quotes as a string.
func isPlain(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf":
		return false
	}
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		inside := i > 0 && ('0' <= r && r <= '9' || strings.ContainsRune("-_./@", r) || r == ':' && i < len(s)-1)
		if !letter && !inside {
			return false
		}
	}
	return true
}

// IsZero makes omitempty omit an empty word.
func (w word) IsZero() bool { return w.text == "" }

// isWord reports whether s fits into one line, a header and a variable. It refuses U+FFFD: all
// bytes that are not UTF-8 become that, so two different words could become equal.
func isWord(s string) bool {
	return len(s) <= maxWordBytes && !strings.ContainsRune(s, utf8.RuneError) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

// parse reads the content of a key file. Its errors begin with the line and column if they are
// known, and quote only words of the file that are too short to be a key, because people paste
// keys into the wrong place.
func parse(data []byte) ([]Entry, error) {
	var w keysYAML
	if err := decode(data, &w, "keys at the top and in an entry "+knownKeys); err != nil {
		return nil, err
	}
	var entries []Entry
	seen := make(map[string]bool)
	for i, entry := range w.Keys {
		e, err := entry.entry()
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		// With two entries for one key it would be unclear which one counts.
		if seen[e.ID] || seen[e.SHA256] {
			return nil, textfile.ErrorAt(entry.ID.at, "this id or its sha256 already exists: take one of the entries out")
		}
		seen[e.ID], seen[e.SHA256] = true, true
		entries = append(entries, e)
	}
	return entries, nil
}

// decode decodes the YAML in data into v. known lists the allowed names, for errors.
func decode(data []byte, v any, known string) error {
	content, err := textfile.ParseYAML(data)
	if err != nil || content == nil { // nil: only comments
		return err
	}
	return withPlace(yaml.NodeToValue(content, v, yaml.Strict()), known)
}

// withPlace replaces an error of the library, which would quote the file around the place.
func withPlace(err error, known string) error {
	var place *textfile.SyntaxError
	var unknown *yaml.UnknownFieldError
	var twice *yaml.DuplicateKeyError
	var kind *yaml.UnexpectedNodeTypeError
	var other yaml.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &place):
		return place
	case errors.As(err, &unknown):
		return textfile.ErrorAt(unknown.Token, fmt.Sprintf("unknown key %s: the file may have %s", quote(unknown.Token.Value), known))
	case errors.As(err, &twice):
		return textfile.ErrorAt(twice.Token, quote(twice.Token.Value)+" appears twice: take one out")
	case errors.As(err, &kind) && kind.Expected == ast.SequenceType:
		return textfile.ErrorAt(kind.Token, "a list is expected here: write it as [one, two]")
	case errors.As(err, &other):
		return textfile.ErrorAt(other.GetToken(), "something else is expected here: correct it here or just before; the file may have "+known)
	}
	return errors.New("it is not YAML that can be read: correct it")
}

// entry checks and converts the entry of one key.
func (w keyYAML) entry() (e Entry, err error) {
	e = Entry{ID: w.ID.text, SHA256: strings.ToLower(w.SHA256.text), Attributes: w.Owner.attributes()}
	if e.ID == "" || strings.ContainsFunc(e.ID, func(r rune) bool { return !isKeyRune(r) }) {
		return Entry{}, textfile.ErrorAt(w.ID.at, "id is missing or has other characters than letters, digits and dashes: correct it")
	}
	if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != sha256.Size {
		return Entry{}, textfile.ErrorAt(w.SHA256.at, "sha256 is missing or is not 64 hexadecimal digits: correct it, the key itself does not belong here")
	}
	for _, t := range []struct {
		from word
		to   *time.Time
	}{{w.Created, &e.Created}, {w.Expires, &e.Expires}, {w.Revoked, &e.Revoked}} {
		if *t.to, err = t.from.time(); err != nil {
			return Entry{}, err
		}
	}
	return e, nil
}

// time reads a time or a day; an empty word is the zero time.
func (w word) time() (time.Time, error) {
	if w.text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		t, err := time.Parse(layout, w.text)
		t = t.UTC().Truncate(time.Second)
		// A year outside this range could not be read back after it is written in UTC.
		if err == nil && t.Year() > 1 && t.Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, textfile.ErrorAt(w.at, "is not a time: write it like 2026-07-28T09:00:00Z or 2026-07-28")
}

func texts(words []word) []string {
	var all []string
	for _, w := range words {
		if w.text != "" {
			all = append(all, w.text)
		}
	}
	return all
}

// quote quotes a word for an error, unless it is longer than [textfile.MaxQuoted].
func quote(s string) string {
	if len(s) > textfile.MaxQuoted {
		return "(too long to be shown)"
	}
	return strconv.Quote(s)
}

func parseFile(file string, data []byte) ([]Entry, error) {
	entries, err := parse(data)
	if err != nil {
		return nil, keyFile.content(file, err)
	}
	return entries, nil
}

// withEntries returns old, the content of a key file, with its entries replaced. It checks that
// the result reads back as entries, because an unreadable key file locks everybody out. If it
// does not, withEntries tries without the comments of the file, and then returns an error.
func withEntries(old []byte, entries []Entry) ([]byte, error) {
	w := keysYAML{Keys: []keyYAML{}}
	for _, e := range entries {
		w.Keys = append(w.Keys, keyYAMLOf(e))
	}
	comments := make(yaml.CommentMap)
	if err := yaml.UnmarshalWithOptions(old, new(keysYAML), yaml.CommentToMap(comments)); err != nil {
		comments = nil
	}
	before := head(old)
	for range 2 {
		if data, err := encode(w, comments); err == nil {
			data = append(before, data...)
			if back, err := parse(data); err == nil && reflect.DeepEqual(back, entries) {
				return data, nil
			}
		}
		before, comments = nil, nil
	}
	return nil, errors.New("the changed file would not read back: correct the entries by hand")
}

// head returns what stands before the entries of a key file whose old content has no entries: the
// header of a new file, or the comments if there is nothing else, which the YAML library loses.
func head(old []byte) []byte {
	if len(old) == 0 {
		return []byte(header)
	}
	for line := range bytes.Lines(old) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return nil
		}
	}
	return append(bytes.TrimSuffix(bytes.Clone(old), []byte("\n")), '\n')
}

func encode(w keysYAML, comments yaml.CommentMap) (data []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the YAML library failed: %v", fault)
		}
	}()
	return yaml.MarshalWithOptions(w, yaml.WithComment(comments), yaml.IndentSequence(true))
}

func keyYAMLOf(e Entry) keyYAML {
	at := func(t time.Time) word {
		if t.IsZero() {
			return word{}
		}
		return word{text: t.Format(time.RFC3339)}
	}
	list := func(texts []string) []word {
		var words []word
		for _, text := range texts {
			words = append(words, word{text: text})
		}
		return words
	}
	return keyYAML{
		ID: word{text: e.ID}, SHA256: word{text: e.SHA256},
		Owner: ownerYAML{
			User: word{text: e.User}, Tenant: word{text: e.Tenant}, Email: word{text: e.Email}, Roles: list(e.Roles), Permissions: list(e.Permissions),
			Plan: word{text: e.Plan}, Scope: word{text: e.Scope}, Trust: word{text: e.Trust},
		},
		Created: at(e.Created), Expires: at(e.Expires), Revoked: at(e.Revoked),
	}
}

func isKeyRune(r rune) bool {
	return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
