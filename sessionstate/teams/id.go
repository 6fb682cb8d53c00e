package teams

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// crockford is the alphabet of Crockford's base 32, which has no characters that look alike.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// handleLength is the number of characters after the prefix of a handle: 60 bits.
const handleLength = 12

// newHandle returns a random id with a prefix. It is short, because models copy short ids more
// reliably than UUIDs.
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

// NewToken returns a random secret that authenticates a session of a tenant. It names the tenant,
// because the agent of the session may have no credential.
func NewToken(tenant string) string {
	return rand.Text() + "." + base64.RawURLEncoding.EncodeToString([]byte(tenant))
}

// tokenTenant returns the tenant that a token names, "" if it names none.
func tokenTenant(token string) string {
	_, encoded, _ := strings.Cut(token, ".")
	tenant, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	return string(tenant)
}

// digest returns the hash of a string of which the database needs only equality.
func digest(text string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}
