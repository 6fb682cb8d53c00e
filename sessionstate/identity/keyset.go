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
)

const (
	maxKeySetBytes = 1 << 20
	maxKeys        = 100
	// RFC 7518, section 3.3, asks for 2048 bits; beyond 8192 one signature takes
	// long enough to be a weapon.
	minRSABits, maxRSABits = 2048, 8192
)

var (
	rsaAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	// algorithms are those of public keys: none and the shared secrets (HS256, ...)
	// are not among them.
	algorithms = append([]string{"ES256", "ES384", "ES512", "EdDSA"}, rsaAlgorithms...)
)

// keySet is an issuer's key set. It does not change.
type keySet struct{ keys []verifyKey }

// verifyKey is a public key and the algorithms that it may be used with, which
// the key decides and never the token.
type verifyKey struct {
	id         string
	algorithms []string
	key        jwt.VerificationKey
}

// find returns the keys that may have signed a token with that key id and
// algorithm: those of the id, or all if the token names none.
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

// parseKeySet reads a JSON Web Key Set. Keys that are not for checking signatures,
// or of a kind that is not known, are passed over, as RFC 7517, section 5, asks.
// Errors quote nothing of data.
func parseKeySet(data []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &document); err != nil || document.Keys == nil {
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

// parseKey reads the public part of a key. A panic of the library is one more key
// that cannot be read: it must not end the proxy.
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
	// Only what is public is passed on: no secrets, and no certificates, whose
	// address might be asked.
	public := jwkset.JWKMarshal{KTY: m.KTY, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E}
	if public.KTY == jwkset.KtyOKP {
		public.ALG = jwkset.AlgEdDSA // which the library takes for granted there
	}
	jwk, err := jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return verifyKey{}, false
	}
	admitted := admittedBy(jwk.Key())
	if m.ALG != "" {
		admitted = slices.DeleteFunc(admitted, func(a string) bool { return a != string(m.ALG) && (a != "EdDSA" || m.ALG != "Ed25519") })
	}
	return verifyKey{id: m.KID, algorithms: admitted, key: jwk.Key()}, len(admitted) > 0
}

// admittedBy returns the algorithms of a key's kind.
func admittedBy(key any) []string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			return slices.Clone(rsaAlgorithms)
		}
	case *ecdsa.PublicKey:
		// RFC 7518, section 3.4: each curve has its one hash.
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
