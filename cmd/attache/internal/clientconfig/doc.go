// Package clientconfig reads and edits the files in which MCP clients keep their servers.
//
// It finds the servers in a file ([Read]), and plans the edits that put attache in front of them
// ([Document.Wrap]) or remove it again ([Document.Unwrap]). Package mcpclient lists the files of each
// client, and package clientfile reads and writes files.
//
// A file is never decoded and encoded again. A parser reports the offsets (tailscale/hujson for JSON
// with and without comments, the parser of go-toml for TOML), and an edit replaces the bytes there.
// So an edit keeps comments, order, spacing, line ends, a byte order mark and fields that attache
// does not know.
//
// Wrapping an entry moves its command after "--" in its arguments, without changing its bytes:
//
//	"command": "npx",              "args": ["-y", "server"]
//	"command": "/usr/bin/attache", "args": ["--", "npx", "-y", "server"]
//
// Everything needed to undo this is in the entry itself. So unwrapping needs no record of the
// change, and also works after the client or a person has edited the file. If nobody has, it
// restores the original bytes.
//
// An entry that it does not understand is not changed, and the plan gives the reason.
package clientconfig
