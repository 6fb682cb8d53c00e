package trust

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

// A Source adds the policies of trusted workspaces to those of another source.
type Source struct {
	// Next is the other source, nil for none. If it fails, this source fails too, so that the
	// policies of a workspace never replace those of the operator.
	Next  policy.Source
	Store Store
	// MaxBytes bounds the block of all policies; 0 means no bound.
	MaxBytes int
	// Warn, if not nil, is called once with the reason why a trusted file is not used. path is
	// the workspace.
	Warn func(text, path string)

	warned sync.Map
}

var _ policy.Source = (*Source)(nil)

// Effective implements [policy.Source].
func (s *Source) Effective(ctx context.Context, q policy.Query) (policy.Effective, error) {
	var e policy.Effective
	if s.Next != nil {
		var err error
		if e, err = s.Next.Effective(ctx, q); err != nil {
			return policy.Effective{}, err
		}
	}
	r, trusted := s.Store.Find(q.WorkspacePath)
	if !trusted {
		return e, nil
	}
	own, why := s.own(r)
	if why != "" {
		s.warnOnce(why, r)
		return e, nil
	}
	joined := join(e, own)
	if s.MaxBytes > 0 && len(policy.Render(joined, 0)) > s.MaxBytes {
		s.warnOnce("the workspace's own policies are not used: with them the briefing would be longer than briefing.max_bytes; shorten them", r)
		return e, nil
	}
	return joined, nil
}

// own returns the policies that r trusts, or the reason why they are not used.
func (s *Source) own(r Record) (own policy.Effective, why string) {
	text, err := Read(r.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return own, "" // the user may remove the file
	case err != nil:
		return own, "the workspace's own policies are trusted and cannot be read: " + err.Error()
	case policy.Digest(string(text)) != r.Digest:
		return own, `the workspace's own policies have changed since they were trusted, and are not used; look at them with "attache trust --show WORKSPACE", then trust them again with "attache trust WORKSPACE", or forget them with "attache untrust WORKSPACE"`
	}
	own, problems := filesource.ParseLoose(r.Path(), text)
	for _, p := range problems {
		if !p.Warning {
			return policy.Effective{}, "the workspace's own policies are not used: " + p.String()
		}
	}
	return own, ""
}

func (s *Source) warnOnce(text string, r Record) {
	if _, warned := s.warned.LoadOrStore(r.Real+text, true); !warned && s.Warn != nil {
		s.Warn(text, r.Workspace)
	}
}

// join returns e with the policies of a workspace. A workspace is inside all scopes, so its prepended
// policies come last and its appended ones first. It cannot replace a policy with the same name.
func join(e, own policy.Effective) policy.Effective {
	out := policy.Effective{Objectives: slices.Clone(e.Objectives)}
	known := map[string]bool{}
	for _, p := range e.Policies {
		known[p.Name] = true
	}
	added := func(at policy.Position) []policy.Policy {
		return slices.DeleteFunc(slices.Clone(own.Policies), func(p policy.Policy) bool { return p.Position != at || known[p.Name] })
	}
	middle := slices.IndexFunc(e.Policies, func(p policy.Policy) bool { return p.Position != policy.Prepend })
	if middle < 0 {
		middle = len(e.Policies)
	}
	out.Policies = slices.Concat(e.Policies[:middle], added(policy.Prepend), added(policy.Append), e.Policies[middle:])
	for _, o := range own.Objectives {
		same := func(other string) bool { return strings.TrimSpace(other) == strings.TrimSpace(o) }
		if !slices.ContainsFunc(out.Objectives, same) {
			out.Objectives = append(out.Objectives, o)
		}
	}
	return out
}
