// Package clientconfig reads and edits the files in which MCP clients keep their
// servers.
//
// It knows where each client keeps them ([Clients], [System.UserFiles]), finds
// the servers in one ([Read]), and plans the edits that put attache in front of
// them and take it out again ([Document.Wrap], [Document.Unwrap]). Package
// clientfile reads and writes them.
//
// A file is never decoded and encoded again. A parser says where things stand
// (tailscale/hujson for JSON with and without comments, the parser of go-toml
// for TOML), and an edit replaces the bytes there. So comments, order, spacing,
// line ends, a byte order mark and what a newer client wrote stay as they are.
//
// Wrapping an entry moves its command behind "--" in its arguments, as the very
// bytes it was written with:
//
//	"command": "npx",              "args": ["-y", "server"]
//	"command": "/usr/bin/attache", "args": ["--", "npx", "-y", "server"]
//
// Everything needed to undo it is in the entry itself: unwrapping needs no record
// of what was done, and works as well when the client or a person has edited the
// file since. When nobody has, the bytes are those that were there before.
//
// What it does when it cannot: an entry it does not understand stays as it is,
// and the plan says why.
package clientconfig
