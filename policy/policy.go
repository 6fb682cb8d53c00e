package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Position says on which side of the work a policy is to be read.
type Position string

const (
	// Prepend puts a policy before those of the scopes further in.
	Prepend Position = "prepend"
	// Append puts a policy after those of the scopes further in.
	Append Position = "append"
)

// Valid reports whether p is one of the two positions there are.
func (p Position) Valid() bool { return p == Prepend || p == Append }

// A Policy is one sentence or paragraph that a model is to follow.
type Policy struct {
	// Name is the policy's identity along a chain of scopes.
	Name     string
	Position Position
	Text     string
	// Inherited says that the policy came from a parent of the scope asked
	// for. It means nothing in a Scope, where every policy is the scope's own.
	Inherited bool
}

// Effective is what holds for a scope, in the order in which it is to be read.
type Effective struct {
	Policies   []Policy
	Objectives []string
}

// Empty reports whether there is nothing to say. A source that answers with an
// empty Effective is up and has been asked: that is not an error.
func (e Effective) Empty() bool { return len(e.Policies) == 0 && len(e.Objectives) == 0 }

// A Query says for whom the effective policies are wanted.
type Query struct {
	// Scope is the name of the innermost scope, such as "acme/platform".
	Scope string
	// Workspace is the id of the workspace, empty if there is none. A source
	// may ignore it.
	Workspace string
	// WorkspacePath is where the workspace is, as it was named by whoever said so,
	// perhaps a client; empty if that is not known. It goes to no other machine.
	WorkspacePath string
	// Credential is the session's own, for sources that ask on its behalf.
	Credential Credential
}

// A Credential is a secret on its way to a source. It never prints: formatting,
// logging and marshalling it give a fixed word. Note that fmt cannot call the
// methods of a value inside an unexported field; do not keep a Credential in one
// that gets printed.
type Credential string

// hidden is what a credential looks like wherever it is printed. It tells an
// absent credential from a present one, which is the question when debugging.
func (c Credential) hidden() string {
	if c == "" {
		return "[none]"
	}
	return "[hidden]"
}

// Reveal returns the secret itself, for the one place that sends it.
func (c Credential) Reveal() string { return string(c) }

// String hides the secret.
func (c Credential) String() string { return c.hidden() }

// Format hides the secret from every verb of fmt, the wrong ones included.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.hidden()) }

// LogValue hides the secret from slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.hidden()) }

// MarshalText hides the secret from encoding/json and its like.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.hidden()), nil }

// A Source knows the effective policies of scopes. It is safe for use by
// several goroutines, answers each call afresh, and keeps no reference to what
// it returned: the caller may change it.
//
// An error is one of those below, or wraps one; no error text contains the
// query's credential. On any error the session's tools still work: the caller
// goes without the policies, warns once, and may ask again later.
type Source interface {
	Effective(ctx context.Context, q Query) (Effective, error)
}

var (
	// ErrUnknownScope: the source is up and has no scope of that name. Asking
	// again does not help until someone writes the scope down or the name is
	// corrected.
	ErrUnknownScope = errors.New("unknown scope")

	// ErrInvalid: what the source holds contradicts itself or cannot be read
	// as policies (a cycle, an unknown parent, a mistake in a file). A person
	// has to mend it; the text says where.
	ErrInvalid = errors.New("invalid policies")

	// ErrUnavailable: the source is down, too slow, or answered with something
	// that is not policies. Asking again later may help.
	ErrUnavailable = errors.New("policy source is down")

	// ErrUnauthorized: the source refused the credential. Asking again with
	// the same one does not help.
	ErrUnauthorized = errors.New("policy source refused the credential")
)

// A Scope is what was written down for one scope: one policy file.
type Scope struct {
	// Name is the scope's own name, such as "acme/platform". The name means
	// nothing beyond itself: only Parent makes a chain.
	Name string
	// Parent is the name of the scope this one builds on, empty for none.
	Parent string
	// Policies in the order written down; no two with one name.
	Policies []Policy
	// Drop names the inherited policies that this scope does without. A name
	// that no parent has is ignored, so that a parent can be tidied up without
	// breaking its children.
	Drop []string
	// Objectives in the order written down.
	Objectives []string
}

// Digest names a text by its content: "sha256:" and 64 hexadecimal digits.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
