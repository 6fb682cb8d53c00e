package sessionstate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
)

// A Principal is the verified identity of a caller. It comes only from a verified credential or
// from the operator, never from claims of the client. It is immutable: do not write to its
// slices or its map.
type Principal struct {
	// KeyID names the key or token, never its secret.
	KeyID string
	// User, Tenant and Email are opaque; empty means unknown.
	User, Tenant, Email string
	// Roles and Permissions are names that the operator chooses.
	Roles, Permissions []string
	// TokenScopes are the OAuth scopes of a token (RFC 9068 section 2.2.3). Rules do not read
	// them.
	TokenScopes []string
	// Plan is the tenant's plan, such as "free".
	Plan string
	// Scope is the policy scope of the principal, empty for the configured one.
	Scope string
	// Trust is "direct", "sandboxed" or empty.
	Trust string
	// Asserted maps each field above that the operator asserted to its origin, such as "user"
	// to "MCP_USER_ID". The other fields come from the credential.
	Asserted map[string]string
}

// ErrOtherPrincipal means that a credential belongs to another user or tenant than the
// operator named. The credential is not used, because its permissions were granted to somebody
// else. Correct one of the two.
var ErrOtherPrincipal = errors.New("credential belongs to another user or tenant than the operator named")

// Overlay merges the principals from the operator and from a credential: fields that the
// operator set win. Either may be nil. The error is [ErrOtherPrincipal]; Overlay then returns
// the operator's principal alone.
func Overlay(operator, credential *Principal) (*Principal, error) {
	switch {
	case operator == nil:
		return credential, nil
	case credential == nil:
		return operator, nil
	case differ(operator.User, credential.User) || differ(operator.Tenant, credential.Tenant):
		return operator, ErrOtherPrincipal
	}
	p := *operator
	p.KeyID = cmp.Or(credential.KeyID, p.KeyID)
	p.User, p.Tenant, p.Email = cmp.Or(p.User, credential.User), cmp.Or(p.Tenant, credential.Tenant), cmp.Or(p.Email, credential.Email)
	p.Plan, p.Scope, p.Trust = cmp.Or(p.Plan, credential.Plan), cmp.Or(p.Scope, credential.Scope), cmp.Or(p.Trust, credential.Trust)
	p.TokenScopes = credential.TokenScopes
	p.Asserted = map[string]string{}
	maps.Copy(p.Asserted, credential.Asserted)
	maps.Copy(p.Asserted, operator.Asserted)
	if p.Roles == nil {
		p.Roles = credential.Roles
	}
	if p.Permissions == nil {
		p.Permissions = credential.Permissions
	}
	return &p, nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Same reports whether p and q are equal. Either may be nil.
func (p *Principal) Same(q *Principal) bool {
	if p == nil || q == nil {
		return p == q
	}
	return p.KeyID == q.KeyID && p.User == q.User && p.Tenant == q.Tenant && p.Email == q.Email &&
		p.Plan == q.Plan && p.Scope == q.Scope && p.Trust == q.Trust &&
		slices.Equal(p.Roles, q.Roles) && slices.Equal(p.Permissions, q.Permissions) &&
		slices.Equal(p.TokenScopes, q.TokenScopes) && maps.Equal(p.Asserted, q.Asserted)
}

// fact returns the value of the field name of p as a Fact.
func (p *Principal) fact(name, value string) Fact {
	if value == "" {
		return Fact{}
	}
	if from, ok := p.Asserted[name]; ok {
		return Fact{Value: value, Source: Operator, From: from}
	}
	return Fact{Value: value, Source: Credential, From: p.KeyID}
}
