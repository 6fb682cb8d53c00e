// Package revision says how the revisions of the protocol differ for a front. A revision is a date, so
// revisions compare as texts; "" stands for a client that does not name a revision.
package revision

// HasHandshake reports whether clients of a revision begin with initialize and have a session id. It compares
// texts that are no revision in the same way, because nobody has checked the header. Many clients up to
// 2025-03-26 send no header, because the header came with 2025-06-18.
func HasHandshake(revision string) bool { return revision < "2026-07-28" }

// IsLegacy reports whether revision is a known revision with a handshake. The specification wants 400 for any
// other value in the header MCP-Protocol-Version (2025-11-25, basic/transports, "Protocol Version Header").
func IsLegacy(revision string) bool {
	switch revision {
	// The first is from before the first release. Clients of the TypeScript SDK negotiate and send it.
	case "2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25":
		return true
	}
	return false
}

// HasBatches reports whether a revision allows arrays of messages. 2025-06-18 removed them (its changelog).
func HasBatches(revision string) bool { return revision == "2024-11-05" || revision == "2025-03-26" }

// Resumes reports whether the clients of a revision take up the streams of their requests again (SEP-1699).
// Most clients of earlier revisions do not, and 2026-07-28 has no such streams.
func Resumes(revision string) bool { return revision == "2025-11-25" }
