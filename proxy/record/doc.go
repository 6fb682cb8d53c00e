// Package record writes the lines that pass a relay to a file, without secrets, and
// reads such a file. Package proxy/replay plays it.
//
// A file is JSON Lines. The first line is a header:
//
//	{"version":1,"era":"legacy","id_prefix":"41702983","given":{"--trust":"sandboxed"},"scrubbed":["home"]}
//
// Each following line is a line that passed, or the end or start of a server:
//
//	{"t":0.012,"at":"client-in","frame":"{\"jsonrpc\":\"2.0\",…}"}
//	{"t":7.3,"at":"server-exit","frame":"{\"exit\":\"exit status 3\",…}"}
//
// t is in seconds since the start. at is one of [ClientIn], [ServerIn], [ServerOut],
// [ClientOut], [ServerExit], [ServerStart] and [ServerStop]. The last three mean that the server
// ended during the session, that another one was started in its place, and that the server ended
// because the session had ended, while calls were running; their line is an [Exit] or a [Start].
// frame contains the exact bytes without the newline, but with the
// carriage return of a CRLF. A line that is not UTF-8 has "base64" and no "frame". A last
// line without a newline has "partial":true. A line that was too long to be held has
// "oversize":true and no bytes: such a recording cannot be played.
//
// # Secrets
//
// Secrets are replaced before they reach the disk. Each placeholder has the form of what
// it replaces, so frames stay valid JSON with the same meaning; see [Scrubber]. A secret
// that was not named and does not look like one is not found: read a recording before you
// give it to others.
package record
