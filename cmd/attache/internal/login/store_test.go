package login

import (
	"testing"
	"time"
)

// A person sees how long a login is valid, and what to do.
func TestDescribe(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	for _, test := range []struct {
		grant  Grant
		want   string
		usable bool
	}{
		{Grant{}, "", true},
		{Grant{Scopes: []string{"read", "wr\x1bite"}, CanRenew: true}, " (read wr\uFFFDite), renews itself", true},
		{Grant{CanRenew: true, Expires: now.Add(-time.Hour)}, ", renews itself", true},
		{Grant{Expires: now.Add(time.Hour)}, ", until 2026-11-29 13:00:00", true},
		{Grant{Expires: now.Add(-time.Hour)}, ": has ended 2026-11-29 11:00:00", false},
		{Grant{Expires: now.Add(9 * time.Second)}, ": has ended 2026-11-29 12:00:09", false}, // within the leeway
		{Grant{Ended: "revoked", CanRenew: true}, ": has ended: revoked", false},
		{Grant{CanRenew: true, Wanted: []string{"write"}}, ", renews itself; the server wants more rights (write): log in again", true},
	} {
		if got, usable := test.grant.Describe(now), test.grant.Usable(now); got != test.want || usable != test.usable {
			t.Errorf("%+v: %q, usable %t", test.grant, got, usable)
		}
	}
}
