package capture

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// cutCredentials takes every member named as one of [CredentialKeys], or alike, out
// of a frame: of params._meta, where a host sends one, and of all other places but
// the arguments of a call, which are the model's. An error leaves the frame as it
// was: it must go to no server.
func (c *Conn) cutCredentials(ctx context.Context, m *wire.Message) error {
	var arguments wire.Value
	if !m.Kind().IsReply() { // a reply calls nothing
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

// mayName reports whether b, a part of plain JSON, may hold the name of a
// credential. It decides most frames at memory speed: but for blanks, and for letters
// that are not ASCII, each spelling that is not escaped has -mcp/ in it.
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

// endsLikeName reports whether the last letters of b may be those in front of the
// slash in the name of a credential.
func endsLikeName(b []byte) bool {
	left := "-mcp"
	for i := len(b) - 1; i >= 0 && left != ""; i-- {
		c, last := b[i], left[len(left)-1]
		switch {
		case c >= utf8.RuneSelf:
			return true
		case c == ' ':
		case c == last, 'A' <= c && c <= 'Z' && c+'a'-'A' == last:
			left = left[:len(left)-1]
		default:
			return false
		}
	}
	return left == ""
}

// A credentialSearch finds the credentials in a frame.
type credentialSearch struct {
	arguments wire.Value
	cuts      []wire.Splice
	places    [][]string
}

// value looks into v, which stands at path.
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

// isCredentialName reports whether some reader takes name for a key of a credential.
func isCredentialName(name string) bool {
	return wire.SameName([]byte(name), CredentialKey) || wire.SameName([]byte(name), TokenKey)
}

// maxCutsTold is how many of the credentials cut out of one frame are logged. No
// honest client sends more than two.
const maxCutsTold = 4

// logCuts notes what was cut out, and logs once a credential in a place where none
// counts.
func (c *Conn) logCuts(ctx context.Context, places [][]string) {
	call := middleware.CallFrom(ctx)
	for _, path := range places[:min(len(places), maxCutsTold)] {
		name := path[len(path)-1]
		switch {
		case name != CredentialKey && name != TokenKey:
			c.logUnused(ctx, ", as its key is spelt otherwise: write it to the letter", CredentialKeys()...)
		case len(path) != 3 || path[0] != "params" || path[1] != "_meta":
			c.logUnused(ctx, ", as it does not stand in params._meta of a request: send it there", name)
		}
		call.Note(middleware.Note{
			Layer: "capture", Act: middleware.Edited, Why: "a credential goes to no server",
			Path: path, Before: []byte(`"[hidden]"`),
		})
	}
}
