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
// be reached or refused the stream (HTTP/2), a front of attache says so (503 with Retry-After, and Attache-Executed or
// Attache-Front), the session was unknown (404, and the 400 that servers send instead),
// the credential was refused (401, 403), a header did not match (-32020), or the server
// redirected it within the origin (307, 308). A redirect to another origin is not
// followed. After any other 503 with Retry-After, only messages that may be executed twice, such as
// tools/list, are sent again, unless the body of the 503 is the reply.
package remote

// How a message passes:
//
// The relay writes it to stdin. A request that need not wait for others becomes an exchange immediately (Take).
// All other messages go into a pipe, from which run makes one exchange after the other, in their order.
//
// An exchange has a goroutine. It sends the message (do, post, Server.send), and sends it again if the server
// cannot have executed it, or may execute it twice (recover, awaitServer). Then it reads the answer, a JSON document or a
// stream, which it may have to resume (read, readJSON, readEvents). It assembles each message of the server in an
// outbox.Frame, finds the request that it answers (take), and lets the Outbox pass it to the relay. If there is no
// answer, it makes an error for each request that lacks one (fail).
//
// One more goroutine reads the GET stream of the session (listen). When the server has lost the session, lose
// ends the Server, and messages that it has not accepted are returned to the relay (giveBack).
