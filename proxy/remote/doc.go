// Package remote reaches an MCP server over Streamable HTTP, in the form in which
// package proxy takes the server that it relays to (proxy.Upstream).
//
// Every line that the relay writes leaves as the body of one POST, and every message
// in an answer arrives as a line: the body of a JSON answer, or the data of an event of
// a stream. The bytes of a message do not change, but for line breaks between its
// tokens, which would end the line. A message of any size passes in bounded memory.
//
// A [Server] does what a client of the transport has to do, for all revisions:
//
//   - 2025-03-26 to 2025-11-25: the session id and the negotiated version on each
//     request, the stream that a GET opens, resumption of a stream that broke, DELETE at
//     the end. A session that the server has lost is over: what was not sent is given
//     back, for the session that the relay opens in its place.
//   - 2026-07-28: the headers that mirror the body, computed from the bytes that leave;
//     a cancellation closes the stream of the request.
//
// The revision is read from each message, so the client's choice is never steered.
//
// Each request gets exactly one answer. Where HTTP fails, it is an error that says what
// happened. A POST is sent again only if the server cannot have executed it: nobody could
// be reached, a front of attache says so (503 with Retry-After, and Attache-Executed or
// Attache-Front), the session was unknown (404, and the 400 that servers send instead),
// the credential was refused (401, 403), a header did not match (-32020), or the server
// sent it elsewhere on the same origin (307, 308). A redirect to another origin is not
// followed. Any other 503 with Retry-After has a message sent again that may be executed
// twice, such as tools/list, unless its body is the reply.
package remote
