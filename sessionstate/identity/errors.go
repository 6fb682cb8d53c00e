package identity

import "errors"

// The errors of [Tokens.Resolve]. The session then has no principal, and the caller reports
// this once; the text says what to do. None contains the token or a part of it.
var (
	// ErrToken means that the token cannot be parsed, lacks a required claim, or has one of
	// the wrong type. The issuer or the configured names of claims must change.
	ErrToken = errors.New("token cannot be used")

	// ErrTokenExpired means that the token is past its expiry. Its owner needs a new one.
	ErrTokenExpired = errors.New("token has expired")

	// ErrTokenNotYetValid means that the token's start of validity or its time of issue is in
	// the future. Usually a clock is wrong.
	ErrTokenNotYetValid = errors.New("token is not valid yet")

	// ErrIssuer means that the token is not from the configured issuer.
	ErrIssuer = errors.New("token is from another issuer")

	// ErrAudience means that the token was issued for another audience. The sender may have
	// received it elsewhere.
	ErrAudience = errors.New("token is for another audience")

	// ErrAlgorithm means that the token is unsigned, signed with a shared secret, or signed
	// with an algorithm that its key does not allow. No honest issuer makes such a token.
	ErrAlgorithm = errors.New("token is not signed in a way that is accepted")

	// ErrTokenKey means that the issuer's key set, even after it was read again, lacks the key
	// that the token names.
	ErrTokenKey = errors.New("token is signed by an unknown key")

	// ErrSignature means that the token was changed, or was not signed with the key that it
	// names.
	ErrSignature = errors.New("signature of the token is wrong")

	// ErrKeySet means that the issuer's key set cannot be read and the previous one is too old.
	// No token can be checked until it can be read; [Tokens] keeps trying.
	ErrKeySet = errors.New("key set for tokens cannot be used")
)

// ErrSessionFile means that the session file is missing, may be read or written by others, or
// is not a session file. None of it is used, and the session has no principal, until the program
// that writes the file corrects it; the text says how.
var ErrSessionFile = errors.New("session file cannot be used")

// ErrTokenFile means that the token file is missing, readable by others, or contains no token.
// It identifies nobody until the program that writes it corrects it; the text says how.
var ErrTokenFile = errors.New("token file cannot be used")
