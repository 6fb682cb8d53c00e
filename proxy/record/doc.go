// Package record keeps sessions in files: it writes what passes a relay,
// without secrets, and reads such a file again. Package proxy/replay plays one.
//
// A file is JSON Lines. The first line is a header:
//
//	{"version":1,"era":"legacy","id_prefix":"41702983","given":{"--trust":"sandboxed"},"scrubbed":["home"]}
//
// and each other line one line that passed, or the end or start of a server:
//
//	{"t":0.012,"at":"client-in","frame":"{\"jsonrpc\":\"2.0\",…}"}
//	{"t":7.3,"at":"server-exit","frame":"{\"exit\":\"exit status 3\",…}"}
//
// t is in seconds since the start. at is one of [ClientIn], [ServerIn],
// [ServerOut], [ClientOut], [ServerExit], [ServerStart]: the last two where the server ended under
// its client, and where another one was started in its place. They have an [Exit] and a
// [Start] for a line. frame holds the exact bytes without the newline; of a line that ended in
// CRLF it keeps the carriage return. Bytes that are not UTF-8 are "base64" in place of "frame". A
// last line without a newline has "partial":true. A line that was too long to be held has
// "oversize":true and no bytes: such a recording cannot be played whole.
//
// # Secrets
//
// Secrets are replaced before they reach the disk, each by a placeholder that
// reads like what it stands for, so frames stay valid JSON and mean the same; see
// [Scrubber]. What does not look like a secret and was not named as one is not
// found: look at a recording before you give it away.
package record
