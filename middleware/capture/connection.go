package capture

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"

	"github.com/attache-mcp/attache/sessionstate"
)

// connection returns the name of the connection; its value is "" if nothing names it.
func (o *ConnOptions) connection() sessionstate.Fact {
	if o.Session != "" {
		return sessionstate.Fact{Value: "front-" + o.Session, Source: sessionstate.Transport, From: "the session of the front"}
	}
	return sessionstate.Fact{Value: o.Name, Source: sessionstate.None, From: "this connection"}
}

// connectionKey returns the session key for a connection in which nothing else names the
// session.
func connectionKey(named sessionstate.Fact, handshakes int) sessionstate.Fact {
	switch {
	case named.Value == "":
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
		named.Value = "connection-" + hex.EncodeToString(b[:])
	case handshakes > 1:
		named.Value += "-" + strconv.Itoa(handshakes)
	}
	return named
}
