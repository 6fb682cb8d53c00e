package teams

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// crockford has no letter that is taken for another or for a digit.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// handleLength is how many characters follow the prefix of a handle: 60 bits.
const handleLength = 12

// newHandle returns a random handle with a prefix: models copy short ids better than UUIDs.
func newHandle(prefix string) string {
	var random [handleLength]byte
	_, _ = rand.Read(random[:]) // never fails
	for i, b := range random {
		random[i] = crockford[b%32]
	}
	return prefix + string(random[:])
}

// IsHandle reports whether s has the form of a session's handle.
func IsHandle(s string) bool {
	rest, ok := strings.CutPrefix(s, "ses_")
	return ok && len(rest) == handleLength && strings.Trim(rest, crockford) == ""
}

// digest returns the form in which a secret or a text is kept where only equality counts.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
