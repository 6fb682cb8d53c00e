package record

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A walk copies a valid JSON text without secrets. All other bytes are copied unchanged.
type walk struct {
	s       *Scrubber
	in, out []byte
	done    int // how much of in was copied to out
	changed bool
	layers  int // how many more layers of escapes may be removed

	stack      []container
	credential bool // the next value is that of a member with the name of a credential
}

// A container is an open object or array.
type container struct {
	object, key bool // key: the name of a member follows
	credential  bool // the elements are credentials
}

func (w *walk) run() {
	for i := 0; i < len(w.in); {
		switch c := w.in[i]; c {
		case '{', '[':
			// Of a list below the name of a credential, each element is one. An object has names of
			// its own.
			w.stack = append(w.stack, container{object: c == '{', key: c == '{', credential: c == '[' && w.credential})
			w.credential = false
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			w.credential = false
			i++
		case ',':
			if n := len(w.stack); n > 0 {
				w.stack[n-1].key = w.stack[n-1].object // in an object, a name follows
			}
			w.credential = false
			i++
		case '"':
			i = w.string(i)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = w.number(i)
		default:
			i++
		}
	}
	w.out = append(w.out, w.in[w.done:]...)
}

// replace replaces in[from:to] by the given text.
func (w *walk) replace(from, to int, by []byte) {
	if bytes.Equal(w.in[from:to], by) {
		return
	}
	w.out = append(append(w.out, w.in[w.done:from]...), by...)
	w.done, w.changed = to, true
}

// inCredential reports whether the next value is a credential.
func (w *walk) inCredential() bool {
	n := len(w.stack)
	return w.credential || n > 0 && w.stack[n-1].credential
}

// string copies the string that begins at i and returns the offset after it.
func (w *walk) string(i int) int {
	end := i + 1
	for w.in[end] != '"' {
		if w.in[end] == '\\' {
			end++
		}
		end++
	}
	end++
	raw := w.in[i:end]
	switch n := len(w.stack); {
	case n > 0 && w.stack[n-1].key:
		w.stack[n-1].key = false
		w.credential = !w.s.knownOnly && CredentialName(unquote(raw))
		w.replace(i, end, w.plain(raw))
	case w.inCredential():
		w.replace(i, end, w.secret(raw))
	default:
		w.replace(i, end, w.plain(raw))
	}
	return end
}

// number copies the number that begins at i and returns the offset after it. It replaces a
// credential by 0.
func (w *walk) number(i int) int {
	end := i
	for end < len(w.in) && bytes.IndexByte([]byte("+-.eE0123456789"), w.in[end]) >= 0 {
		end++
	}
	if w.inCredential() {
		w.s.note(nameCredential)
		w.replace(i, end, []byte("0"))
	}
	return end
}

// plain scrubs a quoted string that is not the value of a credential. It keeps the
// escapes, unless they hide a secret.
func (w *walk) plain(raw []byte) []byte {
	out := w.s.text(raw)
	if bytes.IndexByte(raw, '\\') < 0 || w.layers == 0 {
		return out
	}
	text := []byte(unquote(out))
	if scrubbed := w.s.content(text, w.layers-1); !bytes.Equal(scrubbed, text) {
		return appendQuoted(nil, scrubbed)
	}
	return out
}

// secret returns the placeholder for a quoted credential.
func (w *walk) secret(raw []byte) []byte {
	text := unquote(raw)
	if text == "" {
		return raw
	}
	by := placeholderFor([]byte(text))
	if attacheKey().FindString(text) == text || bearer().FindString(text) == text {
		by = string(w.s.text([]byte(text))) // the kind of credential stays visible
	}
	if by == text {
		return raw
	}
	w.s.note(nameCredential)
	return appendQuoted(nil, []byte(by))
}

func unquote(raw []byte) string {
	var s string
	json.Unmarshal(raw, &s) // never fails: raw is a valid JSON string
	return s
}

// content returns b without secrets. b is a line, or the text of a JSON string, which may
// itself be or contain JSON. It returns the same slice if there were none.
func (s *Scrubber) content(b []byte, layers int) []byte {
	if !json.Valid(b) {
		b = s.text(b)
		if !json.Valid(b) {
			return s.behindEscapes(b, layers)
		}
		// A secret had made the JSON invalid: now its members can be searched.
	}
	w := walk{s: s, in: b, layers: layers}
	w.run()
	if !w.changed {
		return b
	}
	return w.out
}

// behindEscapes returns b if it has no secrets when its escapes are removed. Otherwise it
// returns that text without the secrets.
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

// unescaped returns b without the escapes of JSON strings, except those of control
// characters. b need not be a JSON string.
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

// CredentialName reports whether name is that of a credential: a member of a frame, a
// header, or an environment variable. Case, prefix and separators between words do not
// matter.
func CredentialName(name string) bool {
	if i := strings.LastIndexAny(name, "/."); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(name)
	if words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }); len(words) > 1 && words[len(words)-1] == "token" {
		return !slices.Contains(cursorWords, words[len(words)-2])
	}
	name = strings.ReplaceAll(strings.ReplaceAll(name, "-", ""), "_", "")
	return name == "token" || slices.ContainsFunc(credentialSuffixes, func(end string) bool {
		return strings.HasSuffix(name, end) || strings.HasSuffix(name, end+"s")
	})
}

// credentialSuffixes end the names of credentials, without case and separators.
var credentialSuffixes = []string{"apikey", "authorization", "password", "passwd", "passphrase", "secret", "accesstoken", "refreshtoken",
	"authtoken", "bearertoken", "idtoken", "privatekey", "secretkey", "secretaccesskey", "cookie", "connectionstring", "otp",
	"dbpass", "sqlpass", "redispass", "smtppass", "imappass", "mailpass"} // "pass" alone also ends counts, such as tests_pass

// cursorWords precede "token" in names of cursors, which are not secret.
var cursorWords = []string{"progress", "page", "next", "continuation", "sync", "cancel", "cancellation"}
