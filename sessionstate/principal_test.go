package sessionstate

import (
	"errors"
	"testing"
)

func TestOverlay(t *testing.T) {
	operator := &Principal{User: "ada", Tenant: "acme", Asserted: map[string]string{"user": "MCP_USER_ID", "tenant": "MCP_TENANT_ID"}}
	tests := map[string]struct {
		operator, credential, want *Principal
		err                        error
	}{
		"neither":           {},
		"one credential":    {credential: &Principal{User: "bob"}, want: &Principal{User: "bob"}},
		"only the operator": {operator: operator, want: operator},
		"each adds missing fields": {
			operator:   operator,
			credential: &Principal{KeyID: "k", User: "ada", Email: "a@acme.example", Roles: []string{"dev"}, Permissions: []string{"read"}, Plan: "pro", Scope: "acme", Trust: Sandboxed},
			want: &Principal{KeyID: "k", User: "ada", Tenant: "acme", Email: "a@acme.example", Roles: []string{"dev"}, Permissions: []string{"read"},
				Plan: "pro", Scope: "acme", Trust: Sandboxed, Asserted: operator.Asserted},
		},
		"the operator's roles and trust win": {
			operator:   &Principal{KeyID: "session file", Roles: []string{"host"}, Trust: Direct, Asserted: map[string]string{"roles": "f", "trust": "f"}},
			credential: &Principal{KeyID: "k", Roles: []string{"dev"}, Permissions: []string{"read"}, Trust: Sandboxed},
			want:       &Principal{KeyID: "k", Roles: []string{"host"}, Permissions: []string{"read"}, Trust: Direct, Asserted: map[string]string{"roles": "f", "trust": "f"}},
		},
		"another user":   {operator: operator, credential: &Principal{User: "bob", Permissions: []string{"all"}}, want: operator, err: ErrOtherPrincipal},
		"another tenant": {operator: operator, credential: &Principal{User: "ada", Tenant: "globex", Permissions: []string{"all"}}, want: operator, err: ErrOtherPrincipal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Overlay(test.operator, test.credential)
			if !errors.Is(err, test.err) || !got.Same(test.want) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, test.want, test.err)
			}
		})
	}
	if len(operator.Asserted) != 2 || operator.Permissions != nil {
		t.Errorf("the operator's principal was changed: %+v", operator)
	}
}

// Facts of the principal have the right source.
func TestLookupAsserted(t *testing.T) {
	c := &Context{Principal: &Principal{KeyID: "k", User: "ada", Tenant: "acme", Asserted: map[string]string{"user": "MCP_USER_ID"}}}
	for path, want := range map[string]Fact{
		"principal.user":   {Value: "ada", Source: Operator, From: "MCP_USER_ID"},
		"principal.tenant": {Value: "acme", Source: Credential, From: "k"},
	} {
		if got, _ := c.Lookup(path); got != want {
			t.Errorf("%s: %+v; want %+v", path, got, want)
		}
	}
}

// A session whose credential was refused is sandboxed, unless the operator has set the trust.
func TestTrustOfTheUnidentified(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		context Context
		want    string
	}{
		"identified":                           {Context{Trust: Fact{Value: Direct}}, Direct},
		"by default":                           {Context{Trust: Fact{Value: Direct}, Unidentified: refused}, Sandboxed},
		"no facts":                             {Context{Unidentified: refused}, Sandboxed},
		"the operator's level":                 {Context{Trust: Fact{Value: Direct, Source: Operator}, Unidentified: refused}, Direct},
		"the level of a credential is ignored": {Context{Principal: &Principal{Trust: Direct}, Unidentified: refused}, Sandboxed},
	} {
		if got, _ := test.context.Lookup("session.trust"); got.Value != test.want {
			t.Errorf("%s: %s; want %s", name, got.Value, test.want)
		}
	}
}
