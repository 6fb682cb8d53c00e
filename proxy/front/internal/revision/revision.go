// Package revision knows the revisions of the protocol.
package revision

// Modern is the first revision without a handshake.
const Modern = "2026-07-28"

// IsLegacy reports whether a revision has a handshake.
func IsLegacy(name string) bool {
	switch name {
	case "2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25":
		return true
	}
	return false
}

// HasBatches reports whether a revision allows arrays of messages.
func HasBatches(name string) bool { return name == "2024-11-05" || name == "2025-03-26" }
