// Package remote is a proxy.Upstream for an MCP server over Streamable HTTP.
//
// Every line that the relay writes becomes the body of one POST, and every message in an answer, which
// is the body of a JSON answer or the data of an event, becomes a line. The bytes of a message do not
// change, except for line breaks between its tokens, which would end the line. A message of any size
// passes in bounded memory.
//
// A [Server] does what the specification demands of a client of the transport, for all revisions:
//
//   - 2025-03-26 to 2025-11-25: the session id and the negotiated version on each
//     request, the GET stream, resumption of a broken stream, DELETE at
//     the end. If the server loses the session, the session ends, and messages that were not
//     sent are returned for the session that the relay opens in its place.
//   - 2026-07-28: the headers that mirror the body, computed from the bytes that are sent;
//     a cancellation closes the stream of the request.
//
// The revision is read from each message, so the choice is the client's.
//
// Each request gets exactly one answer. If HTTP fails, the answer is an error that says what
// happened. A POST is sent again only if the server cannot have executed it: the server could not
// be reached, a front of attache says so (503 with Retry-After, and Attache-Executed or
// Attache-Front), the session was unknown (404, and the 400 that servers send instead),
// the credential was refused (401, 403), a header did not match (-32020), or the server
// redirected it within the origin (307, 308). A redirect to another origin is not
// followed. After any other 503 with Retry-After, only messages that may be executed twice, such as
// tools/list, are sent again, unless the body of the 503 is the reply.
package remote
