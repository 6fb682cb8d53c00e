package capture

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// cutCredentials removes every member with a name like one of [CredentialKeys] from a
// frame: from params._meta, where a host sends it, and from all other places except the
// arguments of a call, which are written by the model. After an error the frame is
// unchanged and must not be sent to a server.
func (c *Conn) cutCredentials(ctx context.Context, m *wire.Message) error {
	var arguments wire.Value
	if !m.Kind().IsReply() { // a reply has no arguments of a call
		arguments = m.Arguments()
	}
	frame := m.Frame()
	before, after := frame, []byte(nil)
	if arguments.Exists() {
		before, after = frame[:arguments.Off], frame[arguments.Off+len(arguments.Raw):]
	}
	if !mayName(before) && !mayName(after) {
		return nil
	}
	s := credentialSearch{arguments: arguments}
	s.value(m.Root(), nil)
	if len(s.cuts) == 0 {
		return nil
	}
	if err := m.Apply(s.cuts...); err != nil {
		return err
	}
	c.logCuts(ctx, s.places)
	return nil
}

// mayName reports whether b, a part of plain JSON, may contain the name of a
// credential. It decides quickly for most frames: apart from non-ASCII letters, and
// from spaces and DEL, which are the only ASCII characters that JSON allows in a string
// and [wire.SameName] ignores, each spelling without escapes contains "-mcp/".
func mayName(b []byte) bool {
	if bytes.IndexByte(b, '\\') >= 0 {
		return true
	}
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '/')
		if i < 0 {
			return false
		}
		at += i
		if endsLikeName(b[:at]) {
			return true
		}
	}
}

// endsLikeName reports whether b may end with the letters in front of the slash in the
// name of a credential.
func endsLikeName(b []byte) bool {
	rest := "-mcp"
	for i := len(b) - 1; i >= 0 && rest != ""; i-- {
		c, last := b[i], rest[len(rest)-1]
		switch {
		case c >= utf8.RuneSelf:
			return true
		case c == ' ', c == 0x7f:
		case c == last, 'A' <= c && c <= 'Z' && c+'a'-'A' == last:
			rest = rest[:len(rest)-1]
		default:
			return false
		}
	}
	return rest == ""
}

// A credentialSearch finds the credentials in a frame.
type credentialSearch struct {
	arguments wire.Value
	cuts      []wire.Splice
	places    [][]string
}

func (s *credentialSearch) value(v wire.Value, path []string) {
	if s.arguments.Exists() && v.Off == s.arguments.Off {
		return
	}
	var found bool
	for m := range v.Members() {
		if name := m.Key.Text(); isCredentialName(name) {
			found = true
			s.places = append(s.places, append(path[:len(path):len(path)], name))
		} else {
			s.value(m.Value, append(path[:len(path):len(path)], name))
		}
	}
	if found {
		s.cuts = append(s.cuts, wire.RemoveMembers(v, func(m wire.Member) bool { return isCredentialName(m.Key.Text()) })...)
	}
	i := 0
	for e := range v.Elements() {
		s.value(e, append(path[:len(path):len(path)], strconv.Itoa(i)))
		i++
	}
}

// isCredentialName reports whether some parser reads name as a key of a credential.
func isCredentialName(name string) bool {
	return wire.SameName([]byte(name), CredentialKey) || wire.SameName([]byte(name), TokenKey)
}

// maxCutsLogged bounds the number of credentials of one frame that are logged. No
// honest client sends more than two.
const maxCutsLogged = 4

// logCuts adds a note for each credential that was cut out, and logs those that are not used
// because of their place or spelling.
func (c *Conn) logCuts(ctx context.Context, places [][]string) {
	call := middleware.CallFrom(ctx)
	for _, path := range places[:min(len(places), maxCutsLogged)] {
		name := path[len(path)-1]
		switch {
		case name != CredentialKey && name != TokenKey:
			c.logUnused(ctx, ", because its key is not spelt exactly: correct the key", CredentialKeys()...)
		case len(path) != 3 || path[0] != "params" || path[1] != "_meta":
			c.logUnused(ctx, ", because it is not in params._meta of a request: send it there", name)
		}
		call.Note(middleware.Note{
			Layer: "capture", Act: middleware.Edited, Why: "a credential goes to no server",
			Path: path, Before: []byte(`"[hidden]"`),
		})
	}
}
