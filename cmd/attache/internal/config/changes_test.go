package config

import (
	"slices"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// SplitReloadable and Reloaded agree about which keys take effect in a running session.
func TestReloadedKeys(t *testing.T) {
	was, s := DefaultSettings("/was"), DefaultSettings("/is")
	was.origins, s.origins = map[string]setting.Origin{}, map[string]setting.Origin{}
	for _, o := range Options(s) {
		if v, ok := o.Value.(setting.Scalar); ok && o.Key != "" {
			for _, text := range []string{"true", "7", "7h", "7MiB", "sandboxed", "text-only", "forward", "error", "json", "full", "deny", "/seven", "https://seven.example"} {
				if v.Set(text, "") == nil {
					break
				}
			}
		}
	}
	now, later := SplitReloadable(ChangedKeys(was, s))
	out := was.Reloaded(s)
	if got := ChangedKeys(was, out); !slices.Equal(got, now) {
		t.Errorf("Reloaded changes %v, SplitReloadable returns %v", got, now)
	}
	if got := ChangedKeys(out, s); !slices.Equal(got, later) {
		t.Errorf("Reloaded does not change %v, SplitReloadable returns %v", got, later)
	}
	if len(now) < 10 || len(later) < 10 {
		t.Errorf("few keys were changed: %v and %v", now, later)
	}
}
