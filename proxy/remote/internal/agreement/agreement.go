// Package agreement has what a session with a remote server goes on with in another process: its
// id, and what the server has agreed to.
package agreement

import "github.com/attache-mcp/attache/proxy/wire"

// MaxID is how long the id of a session may be, in bytes. Some servers put a token of several
// KiB into it.
const MaxID = 16 << 10

// Visible reports whether s has visible ASCII alone, as the id of a session must.
func Visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7E {
			return false
		}
	}
	return true
}

// Of returns what a session goes on with of the result of initialize, nil if that is too long.
func Of(result wire.Value) []byte {
	var b []byte
	for _, name := range []string{"protocolVersion", "capabilities", "serverInfo"} {
		if v := result.Get(name); v.Exists() {
			b = append(append(append(append(b, ','), wire.Quote(name)...), ':'), v.Raw...)
		}
	}
	if len(b) == 0 || len(b) > MaxID {
		return nil
	}
	b[0] = '{'
	return append(b[:len(b):len(b)], '}')
}

// State returns the id of a session and what Of returned, in one text.
func State(id string, agreed []byte) string {
	return `{"id":` + string(wire.Quote(id)) + `,"result":` + string(agreed) + `}`
}

// Read returns what State was given, and false for any other text.
func Read(state string) (id string, agreed wire.Value, ok bool) {
	v := wire.Value{Raw: []byte(state)}
	id, agreed = v.Get("id").Text(), v.Get("result")
	return id, agreed, id != "" && len(id) <= MaxID && Visible(id) && agreed.IsObject()
}
