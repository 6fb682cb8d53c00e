// Package keys finds the place of API keys, prints them for people, and parses the expiry of new
// keys.
package keys

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Create creates a key in a place and prints it to stdout. A key that cannot be printed is revoked.
func Create(ctx context.Context, p cli.Process, place Place, a identity.Attributes, prefix string, expiry time.Duration, now time.Time) error {
	signal.Ignore(syscall.SIGPIPE) // if nobody reads stdout, this process must still revoke the key
	key, e, err := place.Create(ctx, a, prefix, expiry, now)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.Stdout, key); err != nil {
		_ = place.Revoke(ctx, e.ID, now)
		return fmt.Errorf("the key could not be printed and was revoked: %w", err)
	}
	fmt.Fprintf(p.Stderr, "attache: made key %s, %s; it is not shown again. Its hash is in %s. Give it to a session in %s or by --api-key-file, and to a client of attache serve as its bearer token\n",
		e.ID, validity(e), place, config.APIKeyVariable)
	if all, err := place.List(ctx); err == nil && len(all) == 1 {
		fmt.Fprintln(p.Stderr, "attache: this is the first key: an attache serve that runs without credentials asks for none until it is started again")
	}
	return nil
}

// validity describes until when a key is valid.
func validity(e identity.Entry) string {
	if e.Expires.IsZero() {
		return "valid until it is revoked"
	}
	return "valid until " + e.Expires.Format(time.RFC3339)
}

// ParseExpiry returns the time from now until the expiry s, 0 for an empty s.
func ParseExpiry(s string, now time.Time) (time.Duration, error) {
	const how = "write a span such as 90d or 12h, or a day such as 2027-01-31"
	span, err := time.ParseDuration(s)
	if number, ok := strings.CutSuffix(s, "d"); ok {
		var days int
		days, err = strconv.Atoi(number)
		if days > 100*366 {
			return 0, fmt.Errorf("%q is more than a hundred years: leave --expires out for a key that does not expire", s)
		}
		span = time.Duration(days) * 24 * time.Hour
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if day, notDay := time.Parse(layout, s); notDay == nil {
			span, err = day.Sub(now), nil
		}
	}
	switch {
	case s == "":
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%q is not a time: %s", s, how)
	case span < time.Second:
		return 0, fmt.Errorf("%q is in the past: %s", s, how)
	}
	return span, nil
}

// Print prints entries as a table.
func Print(out io.Writer, entries []identity.Entry, now time.Time) error {
	rows := [][]string{{"ID", "STATE", "USER", "TENANT", "EMAIL", "ROLES", "PERMISSIONS", "PLAN", "SCOPE", "TRUST", "CREATED", "EXPIRES"}}
	for _, e := range entries {
		rows = append(rows, []string{
			e.ID, state(e, now), e.User, e.Tenant, e.Email, strings.Join(e.Roles, ","), strings.Join(e.Permissions, ","),
			e.Plan, e.Scope, e.Trust, dayOf(e.Created), dayOf(e.Expires),
		})
	}
	return term.Table(out, rows)
}

func state(e identity.Entry, now time.Time) string {
	switch {
	case !e.Revoked.IsZero():
		return "revoked"
	case !e.Expires.IsZero() && !now.Before(e.Expires):
		return "expired"
	}
	return "valid"
}

func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}
