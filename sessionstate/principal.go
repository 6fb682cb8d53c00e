package sessionstate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
)

// A Principal is who a credential turned out to be. It comes from a verified
// credential or from the operator alone, never from what a client says of itself,
// and does not change once made: do not write to its slices or its map.
type Principal struct {
	// KeyID names the key or token, never its secret.
	KeyID string
	// User, Tenant and Email are opaque here; empty means not known.
	User, Tenant, Email string
	// Roles and Permissions are words of the operator's own choosing.
	Roles, Permissions []string
	// Plan is the tenant's plan, such as "free".
	Plan string
	// Scope is the policy scope of this principal, empty for the configured one.
	Scope string
	// Trust is "direct", "sandboxed" or empty.
	Trust string
	// Asserted says where the operator asserted which of the fields above: "user" may
	// come from "MCP_USER_ID". The fields that are not in it are the credential's.
	Asserted map[string]string
}

// ErrOtherPrincipal means that a credential belongs to another user or tenant than the
// operator named. The credential is not used: its permissions were granted to somebody else.
// Correct one of the two.
var ErrOtherPrincipal = errors.New("credential belongs to another user or tenant than the operator named")

// Overlay returns the principal of a session for which both the operator and a credential name
// one: each field is the operator's if the operator gave it. Either may be nil. The error is
// [ErrOtherPrincipal]; the principal is then the operator's alone.
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
		slices.Equal(p.Roles, q.Roles) && slices.Equal(p.Permissions, q.Permissions) && maps.Equal(p.Asserted, q.Asserted)
}

// fact is the value of p's field name as a Fact, empty if the value is.
func (p *Principal) fact(name, value string) Fact {
	if value == "" {
		return Fact{}
	}
	if from, ok := p.Asserted[name]; ok {
		return Fact{Value: value, Source: Operator, From: from}
	}
	return Fact{Value: value, Source: Credential, From: p.KeyID}
}
