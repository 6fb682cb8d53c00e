package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A namedIdentifier accepts every credential and returns its own name as the user.
type namedIdentifier string

func (n namedIdentifier) Resolve(context.Context, string) (*sessionstate.Principal, error) {
	return &sessionstate.Principal{User: string(n)}, nil
}

// A refusingIdentifier refuses every credential.
type refusingIdentifier struct{ error }

func (r refusingIdentifier) Resolve(context.Context, string) (*sessionstate.Principal, error) {
	return nil, r.error
}

func TestChain(t *testing.T) {
	const key = "atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGHABCDEFGH"
	tests := []struct{ credential, want string }{
		{key, "key"},
		{"", "key"},
		{"eyJhbGciOiJub25lIn0.e30.c2ln", "token"},
		{" eyJhbGciOiJub25lIn0.e30.c2ln\n", "token"},
		{"eyJhbGciOiJub25lIn0.e30.", "token"},
		{"a.b.c", "token"}, // no key has a dot
		{"aa.bb", "token"},
		{"aa.bb.cc.dd", "token"},
		{".bb.cc", "token"},
		{"aa..cc", "token"},
		{"aa.b+.cc", "token"},
		{"aa.bb=.cc", "token"},
		{"aa.b\nb.cc", "token"},
		{"aa.bb.cc ", "token"},
		{"Bearer aa.bb.cc", "token"},
		{"eyJhbGciOiJub25lIn0", "token"},
		{key + ".bb.cc", "token"},
	}
	for _, test := range tests {
		p, err := identity.Chain(namedIdentifier("key"), namedIdentifier("token")).Resolve(t.Context(), test.credential)
		if err != nil || p.User != test.want {
			t.Errorf("%q went to %v, %v; want %s", test.credential, p, err, test.want)
		}
		if got := identity.LooksLikeToken(test.credential); got != (test.want == "token") {
			t.Errorf("LooksLikeToken(%q) = %v", test.credential, got)
		}
		// A credential that one refuses is not passed to the other.
		no := errors.New("no")
		refused := identity.Chain(refusingIdentifier{no}, refusingIdentifier{no})
		for _, c := range []identity.Identifier{refused, identity.Chain(nil, nil)} {
			p, err := c.Resolve(t.Context(), test.credential)
			if p != nil || err == nil || test.credential != "" && strings.Contains(err.Error(), test.credential) {
				t.Errorf("%q: got %v, %v", test.credential, p, err)
			}
		}
	}
	if _, err := identity.Chain(namedIdentifier("key"), nil).Resolve(t.Context(), "aa.bb.cc"); !errors.Is(err, identity.ErrToken) {
		t.Errorf("got %v", err)
	}
	if p, err := identity.Chain(namedIdentifier("key"), nil).Resolve(t.Context(), key); err != nil || p.User != "key" {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := identity.Chain(nil, namedIdentifier("token")).Resolve(t.Context(), key); !errors.Is(err, identity.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

func TestChainOfBoth(t *testing.T) {
	keys := newResolverTest(t)
	key, _ := create(t, keys.file, ada)
	tokens := newTokensTest(t, allKeys(), nil)
	c := identity.Chain(keys, tokens)
	for _, credential := range []string{key, keyring()["ed"].token(claims(nil), nil)} {
		if p, err := c.Resolve(t.Context(), credential); err != nil || p.User != "ada" {
			t.Errorf("got %v, %v", p, err)
		}
	}
}
