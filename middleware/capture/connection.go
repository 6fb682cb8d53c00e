package capture

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
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

// hostNamesSession reports whether variables of the host name the session, depending on the client.
func (c *Conn) hostNamesSession() bool {
	return c.conn.HostSession != nil && c.conn.Base.Session.Source == sessionstate.HostEnvironment
}

// learnClient sets the session that the host's variables name, if the client is another than in the last request.
func (c *Conn) learnClient(name wire.Value) {
	if !name.IsString() || len(name.Raw) > maxFact {
		return
	}
	client := name.View()
	if client == c.client {
		return
	}
	c.client = strings.Clone(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named = c.conn.HostSession(c.client)
}
