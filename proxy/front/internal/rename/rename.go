// Package rename gives requests of the clients that share a relay ids of their own.
//
// Clients without a handshake share a relay, and every client of an SDK uses the same ids: the first
// subscription of the TypeScript SDK has the id "listen:0". A subscription stays open, so it always gets
// another id. Any other request gets one if its id is that of a request in flight.
package rename

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// SubscriptionID is the member of _meta with the id of the subscriptions/listen request that a message belongs to.
const SubscriptionID = "io.modelcontextprotocol/subscriptionId"

// A Name has the ids and progress tokens of a renamed request, as raw JSON.
type Name struct {
	ID, Token []byte // for the relay; Token is nil if the request has no progress token
	id, token []byte // as the client wrote them
}

// maxToken is the length in bytes of the longest progress token that a Name keeps. The relay bounds the
// bytes of ids, and not those of tokens.
const maxToken = 16 << 10

// Request gives the request m another id. raw is its id, n the number of the name. It returns nil if m
// cannot be edited, or if its progress token is too long to be kept.
func Request(m *wire.Message, raw []byte, n uint64) *Name {
	// What the client wrote stays readable in the logs of the server.
	text := string(raw)
	if v := (wire.Value{Raw: raw}); v.IsString() {
		text = v.Text()
	}
	name := &Name{ID: wire.Quote(text + "#" + strconv.FormatUint(n, 10)), id: raw}
	if token := m.Get("params", "_meta", "progressToken"); token.Exists() && !token.IsNull() {
		if len(token.Raw) > maxToken {
			return nil
		}
		name.Token, name.token = name.ID, bytes.Clone(token.Raw)
		if m.Set(name.Token, "params", "_meta", "progressToken") != nil {
			return nil
		}
	}
	if m.Set(name.ID, "id") != nil {
		return nil
	}
	return name
}

// Restore returns a copy of a message that belongs to a renamed request, with the id and the progress token that the
// client wrote. It returns a copy because the relay owns the message, and knows the request by the other id.
func (n *Name) Restore(m *wire.Message) *wire.Message {
	if m = m.Clone(); !m.Plain() {
		m.LookEnvelope() // otherwise Set refuses it: the whole frame was scanned for a layer
	}
	params := "params"
	if m.Kind().IsReply() {
		params = "result"
		_ = m.Set(n.id, "id")
	}
	if m.Get(params, "_meta", SubscriptionID).Exists() {
		_ = m.Set(n.id, params, "_meta", SubscriptionID)
	}
	if m.MethodIs("notifications/progress") {
		_ = m.Set(n.token, params, "progressToken")
	}
	return m
}

// RestoreStart sets the client's id in the beginning of a long reply to a renamed request. It reports
// false if the id comes after the result.
func (n *Name) RestoreStart(b *[]byte) bool {
	before, after, found := bytes.Cut(*b, n.ID)
	if !found || bytes.Contains(before, []byte(`"result"`)) || bytes.Contains(before, []byte(`"error"`)) {
		return false
	}
	*b = slices.Concat(before, n.id, after)
	return true
}
