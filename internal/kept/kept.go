// Package kept shortens texts that a peer chose and that stay in memory after their message.
package kept

import "crypto/sha256"

// Max is the length in bytes of the longest text that Text returns unchanged.
const Max = 256

// Text returns text or, if it is longer than Max, a digest in its place. No JSON begins like the digest, so a
// digest is never equal to a raw id or a quoted text of a peer.
func Text(text string) string {
	if len(text) <= Max {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + string(sum[:])
}
