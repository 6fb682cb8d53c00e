package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

const (
	maxKeySetBytes = 1 << 20
	maxKeys        = 100
	// RFC 7518, section 3.3, requires 2048 bits. Beyond 8192, checking a signature takes so
	// long that it could be used for an attack.
	minRSABits, maxRSABits = 2048, 8192
)

var (
	rsaAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	// algorithms are the accepted algorithms. They use public keys: neither none nor those with
	// shared secrets (HS256, ...) are accepted.
	algorithms = append([]string{"ES256", "ES384", "ES512", "EdDSA"}, rsaAlgorithms...)
)

// keySet is the key set of an issuer. It is immutable.
type keySet struct{ keys []verifyKey }

// verifyKey is a public key with its allowed algorithms. The key determines these, never the
// token.
type verifyKey struct {
	id         string
	algorithms []string
	key        jwt.VerificationKey
}

// find returns the keys that may have signed a token with the given key id and algorithm: the
// keys with this id, or all keys if the token names none.
func (s *keySet) find(kid, algorithm string) (jwt.VerificationKeySet, error) {
	var found jwt.VerificationKeySet
	known := false
	for _, k := range s.keys {
		if kid != "" && k.id != kid {
			continue
		}
		known = true
		if slices.Contains(k.algorithms, algorithm) {
			found.Keys = append(found.Keys, k.key)
		}
	}
	switch {
	case len(s.keys) == 0:
		return found, fmt.Errorf("%w: the key set has no public key for signatures (RSA from 2048 bits, P-256, P-384, P-521, Ed25519): correct it or identity.jwt.jwks", ErrTokenKey)
	case len(found.Keys) > 0:
		return found, nil
	case known && kid != "":
		return found, fmt.Errorf("%w: its key is for another algorithm: have a new one issued", ErrAlgorithm)
	}
	return found, fmt.Errorf("%w: have a new one issued, or see whether identity.jwt.jwks is this issuer's", ErrTokenKey)
}

// parseKeySet parses a JSON Web Key Set. It skips keys that are not for signatures or of an
// unknown kind, as RFC 7517, section 5, requires. Errors quote nothing of data.
func parseKeySet(data []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(textfile.TrimMark(data), &document); err != nil || document.Keys == nil {
		return nil, errors.New(`it is not a JSON Web Key Set ({"keys": [...]})`)
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("it has more than %d keys", maxKeys)
	}
	set := &keySet{}
	for _, raw := range document.Keys {
		if k, ok := parseKey(raw); ok {
			set.keys = append(set.keys, k)
		}
	}
	return set, nil
}

// parseKey parses the public part of a key. If the library panics, the key is invalid; the
// proxy must continue.
func parseKey(raw []byte) (k verifyKey, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m); err != nil {
		return verifyKey{}, false
	}
	if m.USE != "" && m.USE != jwkset.UseSig || m.KEYOPS != nil && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return verifyKey{}, false
	}
	// Pass on only the public key: no secrets, and no certificates, because the library might
	// fetch their address.
	public := jwkset.JWKMarshal{KTY: m.KTY, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E}
	jwk, err := jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return verifyKey{}, false
	}
	allowed := algorithmsOf(jwk.Key())
	if m.ALG != "" {
		allowed = slices.DeleteFunc(allowed, func(a string) bool { return a != string(m.ALG) && (a != "EdDSA" || m.ALG != "Ed25519") })
	}
	return verifyKey{id: m.KID, algorithms: allowed, key: jwk.Key()}, len(allowed) > 0
}

func algorithmsOf(key any) []string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			return slices.Clone(rsaAlgorithms)
		}
	case *ecdsa.PublicKey:
		// RFC 7518, section 3.4: each curve has exactly one hash.
		switch key.Curve.Params().BitSize {
		case 256:
			return []string{"ES256"}
		case 384:
			return []string{"ES384"}
		case 521:
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}
