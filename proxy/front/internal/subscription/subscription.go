// Package subscription gives the subscriptions of the clients that share a relay ids of their own.
//
// Clients without a handshake share a relay, and every client of an SDK uses the same ids: the first
// subscription of the TypeScript SDK has the id "listen:0". A subscription stays open, so its id would keep
// a request of another client from the relay for as long.
package subscription

import (
	"strconv"

	"github.com/attache-mcp/attache/proxy/wire"
)

// IDKey is the member of _meta with the id of the subscriptions/listen request that a message belongs to.
const IDKey = "io.modelcontextprotocol/subscriptionId"

// Rename returns another id, raw JSON, for a subscription with the raw id. n is its number.
func Rename(raw []byte, n uint64) []byte {
	text := string(raw)
	if v := (wire.Value{Raw: raw}); v.IsString() {
		text = v.Text()
	}
	return wire.Quote(text + "#" + strconv.FormatUint(n, 10))
}

// Restore returns a copy of a message of a renamed subscription, with the client's raw id.
func Restore(m *wire.Message, id []byte) *wire.Message {
	m = m.Clone()
	params := "params"
	if m.Kind().IsReply() {
		params = "result"
		_ = m.Set(id, "id")
	}
	if m.Get(params, "_meta", IDKey).Exists() {
		_ = m.Set(id, params, "_meta", IDKey)
	}
	return m
}

// IsListChange reports whether m says that a list or resource has changed. Such a notification does
// not belong to a call.
func IsListChange(m *wire.Message) bool {
	return m.MethodIs("notifications/tools/list_changed") || m.MethodIs("notifications/prompts/list_changed") ||
		m.MethodIs("notifications/resources/list_changed") || m.MethodIs("notifications/resources/updated")
}
