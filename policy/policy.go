package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Position is the place of a policy relative to those of inner scopes.
type Position string

const (
	// Prepend puts a policy before those of inner scopes.
	Prepend Position = "prepend"
	// Append puts a policy after those of inner scopes.
	Append Position = "append"
)

// Valid reports whether p is Prepend or Append.
func (p Position) Valid() bool { return p == Prepend || p == Append }

// A Policy is a sentence or paragraph that a model must follow.
type Policy struct {
	// Name is the policy's identity along a chain of scopes.
	Name     string
	Position Position
	Text     string
	// Inherited means that the policy is from a parent of the scope in the query. It has no
	// meaning in a Scope.
	Inherited bool
}

// Effective has the policies and objectives that apply to a scope, in reading order.
type Effective struct {
	Policies   []Policy
	Objectives []string
}

// Empty reports whether there are neither policies nor objectives. A source may return an
// empty Effective without an error.
func (e Effective) Empty() bool { return len(e.Policies) == 0 && len(e.Objectives) == 0 }

// A Query describes the session for which a source returns policies.
type Query struct {
	// Scope is the name of the innermost scope, such as "acme/platform".
	Scope string
	// Workspace is the id of the workspace, empty if there is none. A source
	// may ignore it.
	Workspace string
	// WorkspacePath is the path of the workspace, empty if it is unknown. It may come from
	// the client. A source must not send it to another machine.
	WorkspacePath string
	// Credential is the session's credential, for sources that need one.
	Credential Credential
}

// A Credential is a secret for a source. Formatting, logging and marshalling it return a
// fixed word instead. Do not store a Credential in an unexported field of a struct that is
// printed: fmt cannot call its methods there.
type Credential string

// hidden returns the word that is printed for c. It tells an absent credential from a present
// one.
func (c Credential) hidden() string {
	if c == "" {
		return "[none]"
	}
	return "[hidden]"
}

// Reveal returns the secret itself. Call it only where the secret is sent.
func (c Credential) Reveal() string { return string(c) }

// String hides the secret.
func (c Credential) String() string { return c.hidden() }

// Format hides the secret from every verb of fmt, the wrong ones included.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.hidden()) }

// LogValue hides the secret from slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.hidden()) }

// MarshalText hides the secret from encoding/json and its like.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.hidden()), nil }

// A Source returns the effective policies of scopes. It is safe for use by several goroutines,
// returns the current policies in each call, and keeps no reference to the result, which the
// caller may change.
//
// An error wraps one of those below, and never contains the query's credential. After an error
// the session's tools still work: the caller continues without policies, warns once, and may ask
// again later.
type Source interface {
	Effective(ctx context.Context, q Query) (Effective, error)
}

var (
	// ErrUnknownScope means that the source has no scope of that name. Asking again does not
	// help until someone adds the scope or corrects the name.
	ErrUnknownScope = errors.New("unknown scope")

	// ErrInvalid means that the policies contradict each other or cannot be parsed (a cycle,
	// an unknown parent, a mistake in a file). A person must correct them; the text says
	// where.
	ErrInvalid = errors.New("invalid policies")

	// ErrUnavailable means that the source is down or too slow, or that its answer is
	// invalid. Asking again later may help.
	ErrUnavailable = errors.New("policy source is down")

	// ErrUnauthorized means that the source refused the credential. Asking again with the
	// same one does not help.
	ErrUnauthorized = errors.New("policy source refused the credential")
)

// A Scope is the content of one policy file.
type Scope struct {
	// Name is the name of the scope, such as "acme/platform". A slash has no meaning: only
	// Parent makes a chain.
	Name string
	// Parent is the name of the scope from which this one inherits, empty for none.
	Parent string
	// Policies are in the order of the file; no two have the same name.
	Policies []Policy
	// Drop names the inherited policies that do not apply to this scope. A name that no
	// parent has is ignored, so that removing a parent's policy breaks no child.
	Drop []string
	// Objectives are in the order of the file.
	Objectives []string
}

// Digest returns an identifier of the content of text: "sha256:" and 64 hexadecimal digits.
func Digest(text string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}
