package serve

import (
	"testing"

	"github.com/attache-mcp/attache/sessionstate"
)

// A renewed token continues the session of its user. One without a user does not continue that of another token.
func TestPrincipalID(t *testing.T) {
	user := &sessionstate.Principal{Tenant: "acme", User: "ada"}
	other := &sessionstate.Principal{Tenant: "other", User: "ada"}
	nobody := &sessionstate.Principal{KeyID: "jwt"}
	for _, test := range []struct {
		p, q *sessionstate.Principal
		same bool
	}{{user, user, true}, {user, other, false}, {nobody, nobody, false}} {
		if got := principalID(test.p, "a.b.c") == principalID(test.q, "a.b.d"); got != test.same {
			t.Errorf("%+v and %+v: the same is %v", test.p, test.q, got)
		}
	}
	one, two := &sessionstate.Principal{User: "ada", KeyID: "1"}, &sessionstate.Principal{User: "ada", KeyID: "2"}
	if principalID(one, "atk_1_x") == principalID(two, "atk_2_x") {
		t.Error("two keys of one user have the same sessions")
	}
}
