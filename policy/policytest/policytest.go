// Package policytest is the test suite for implementations of [policy.Source]. The test of an
// implementation calls [Run] with a function that makes a source of the given scopes:
//
//	func TestSource(t *testing.T) {
//		policytest.Run(t, func(t *testing.T, scopes map[string]policy.Scope) policy.Source {
//			return filesource.New(writeFiles(t, scopes))
//		})
//	}
package policytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attache-mcp/attache/policy"
)

// A NewSource makes a source of the given scopes by name. It releases the source's resources
// with t.Cleanup.
type NewSource func(t *testing.T, scopes map[string]policy.Scope) policy.Source

// secret is the credential of every query; no error text may contain it.
const secret = "atk_test_00000000000000000000000000000000"

// Run runs the suite.
func Run(t *testing.T, newSource NewSource) {
	t.Run("answers", func(t *testing.T) {
		for _, a := range answers() {
			t.Run(a.name, func(t *testing.T) {
				got, err := ask(t.Context(), newSource(t, a.scopes), a.ask)
				if err != nil {
					t.Fatal(err)
				}
				if d := diff(a.want, got); d != "" {
					t.Errorf("got other policies (-want +got):\n%s", d)
				}
			})
		}
	})
	t.Run("refusals", func(t *testing.T) {
		for _, r := range refusals() {
			t.Run(r.name, func(t *testing.T) {
				got, err := ask(t.Context(), newSource(t, r.scopes), r.ask)
				if !r.is(err) {
					t.Errorf("got the error %v", err)
				}
				if !got.Empty() {
					t.Errorf("got %+v with an error", got)
				}
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
					t.Errorf("the error contains the credential: %v", err)
				}
			})
		}
	})
	t.Run("a cancelled context is an error", func(t *testing.T) { contextOver(t, newSource(t, example())) })
	t.Run("answers belong to the caller", func(t *testing.T) { ownAnswers(t, newSource(t, example())) })
	t.Run("many queries at once", func(t *testing.T) { manyAsk(t, newSource(t, example())) })
}

func ask(ctx context.Context, s policy.Source, scope string) (policy.Effective, error) {
	return s.Effective(ctx, policy.Query{Scope: scope, Workspace: "w1", Credential: secret})
}

func contextOver(t *testing.T, s policy.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := ask(ctx, s, "acme"); !errors.Is(err, context.Canceled) || !got.Empty() {
		t.Errorf("got %+v and %v, want context.Canceled", got, err)
	}
	if _, err := ask(t.Context(), s, "acme"); err != nil {
		t.Errorf("the next query fails too: %v", err)
	}
}

func ownAnswers(t *testing.T, s policy.Source) {
	first, err := ask(t.Context(), s, "acme/platform")
	if err != nil {
		t.Fatal(err)
	}
	for i := range first.Policies {
		first.Policies[i] = policy.Policy{Text: "changed"}
	}
	for i := range first.Objectives {
		first.Objectives[i] = "changed"
	}
	second, err := ask(t.Context(), s, "acme/platform")
	if d := diff(exampleEffective(), second); err != nil || d != "" {
		t.Errorf("got %v after an earlier answer was changed, and other policies (-want +got):\n%s", err, d)
	}
}

func manyAsk(t *testing.T, s policy.Source) {
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := ask(t.Context(), s, "acme/platform"); err != nil || diff(exampleEffective(), got) != "" {
				t.Errorf("got %+v and %v", got, err)
			}
			if _, err := ask(t.Context(), s, "nobody"); !errors.Is(err, policy.ErrUnknownScope) {
				t.Errorf("got %v, want ErrUnknownScope", err)
			}
		})
	}
	wg.Wait()
}

// diff returns how got differs from want. A nil list equals an empty one.
func diff(want, got policy.Effective) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }
