package capture

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"

	"github.com/attache-mcp/attache/sessionstate"
)

// connection returns the name of the connection, a fact without a value if it has none.
func (o *ConnOptions) connection() sessionstate.Fact {
	if o.Session != "" {
		return sessionstate.Fact{Value: "front-" + o.Session, Source: sessionstate.Transport, From: "the session of the front"}
	}
	return sessionstate.Fact{Value: o.Name, Source: sessionstate.None, From: "this connection"}
}

// connectionKey returns the session key of a connection for sessions that nothing else names.
func connectionKey(name sessionstate.Fact, handshakes int) sessionstate.Fact {
	switch {
	case name.Value == "":
		var b [8]byte
		rand.Read(b[:]) // never returns an error
		name.Value = "connection-" + hex.EncodeToString(b[:])
	case handshakes > 1:
		name.Value += "-" + strconv.Itoa(handshakes)
	}
	return name
}
