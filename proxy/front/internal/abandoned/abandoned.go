// Package abandoned remembers calls that a client has given up and that may still get messages.
//
// Clients without a handshake share a session, and all use the same ids. After a cancellation the server may
// still send progress or a reply. If another client used the id or the progress token meanwhile, that message
// would go to it. So until the reply has come, no other call of the session may use that id or that token.
package abandoned

// maxKept is how many ids and tokens a Calls remembers. A server sends no reply to a cancelled request
// (specification, basic/utilities/cancellation), so most of them are never settled.
const maxKept = 10_000

// Calls are the abandoned calls of a session, with ids and tokens as callid.Text returns them. The zero value has
// none. The caller locks, because it looks at its calls in flight under the same lock.
type Calls struct {
	token map[string]string   // the token of each call, by the id of the call; "" for none
	taken map[string]struct{} // all tokens
}

// Add remembers a call. token is "" if it has none.
func (c *Calls) Add(id, token string) {
	// Forget all calls, because that is simple. Only a client that abandons calls without end gets here.
	if c.token == nil || len(c.token)+len(c.taken) >= maxKept {
		c.token, c.taken = map[string]string{}, map[string]struct{}{}
	}
	c.token[id] = token
	if token != "" {
		c.taken[token] = struct{}{}
	}
}

// Has reports whether a call with the id or with the token may still get messages.
func (c *Calls) Has(id, token string) bool {
	_, isID := c.token[id]
	_, isToken := c.taken[token]
	return isID || isToken
}

// Settle forgets the call with the id. Call it when the call has its reply, because no message comes after a
// reply.
func (c *Calls) Settle(id string) {
	delete(c.taken, c.token[id])
	delete(c.token, id)
}
