package login

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/attache-mcp/attache/internal/testkit"
)

// A process that is killed while it saves a grant leaves a file with tokens, which must not outlive the login.
func TestUnfinishedFiles(t *testing.T) {
	for name, do := range map[string]func(Store) error{
		"save":   func(s Store) error { return s.Save(&Grant{URL: "https://mcp.example.com/mcp"}) },
		"delete": func(s Store) error { return s.Delete("https://mcp.example.com/mcp") },
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Dir: t.TempDir()}
			testkit.Check(t, s.Save(&Grant{URL: "https://mcp.example.com/mcp"}))
			left, other := filepath.Join(s.Dir, ".new-1"), filepath.Join(s.Dir, ".new-2") // the second may still be written
			for _, file := range []string{left, other} {
				testkit.Check(t, os.WriteFile(file, nil, 0o600))
			}
			yesterday := time.Now().Add(-24 * time.Hour)
			testkit.Check(t, errors.Join(os.Chtimes(left, yesterday, yesterday), do(s)))
			if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old file is still there: %v", err)
			}
			if _, err := os.Stat(other); err != nil {
				t.Errorf("the new file is gone: %v", err)
			}
		})
	}
}

// GitHub and Slack separate the scopes of a token by commas, which a scope may contain (RFC 6749, section 3.3).
func TestScopesOfToken(t *testing.T) {
	for scope, want := range map[string]string{
		"":                  "read:user,all repo",
		"gist repo":         "gist repo",
		"gist,read:org":     "gist read:org",
		"repo":              "repo",
		"read:user,all":     "read:user,all",
		"read:user,all one": "read:user,all one",
	} {
		g := Grant{Scopes: []string{"read:user,all", "repo"}}
		token := (&oauth2.Token{AccessToken: "a"}).WithExtra(map[string]any{"scope": scope})
		if err := g.setToken(token, time.Now()); err != nil || strings.Join(g.Scopes, " ") != want {
			t.Errorf("%q: %q, %v", scope, g.Scopes, err)
		}
	}
}

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
