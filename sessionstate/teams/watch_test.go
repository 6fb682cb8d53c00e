package teams_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// One process of a session asks, the others ask only when it tells them to, and when it ends, one
// of them takes over.
func TestWatch(t *testing.T) {
	now := time.Now()
	dir, ref := filepath.Join(t.TempDir(), "watches"), teams.Ref{ID: "ses_000000000000"}
	first, second, third := teams.OpenWatch(dir, ref), teams.OpenWatch(dir, ref), teams.OpenWatch(dir, ref)
	defer third.Close()
	other := teams.OpenWatch(dir, teams.Ref{ID: "ses_111111111111"})
	defer other.Close()
	check := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	first.Mine(now)
	check("the second asks before the first was answered", second.Mine(now), true)
	second.Answered(now)
	check("the second asks though it was answered itself", second.Mine(now), true)
	first.Answered(now.Add(-time.Minute))
	check("the second asks when the first was not answered lately", second.Mine(now), true)
	first.Answered(now)
	for range 2 {
		check("the first asks", first.Mine(now), true)
		check("the second asks", second.Mine(now), false)
	}
	check("that of another session asks", other.Mine(now), true)
	check("at first the second is told", second.Told(), false)
	first.Tell()
	first.Tell()
	check("the first is told", first.Told(), false)
	check("the second is told", second.Told(), true)
	check("the second is told still, as it has no answer", second.Told(), true)
	second.Answered(now)
	check("the second is told again", second.Told(), false)
	first.Close()
	check("the second follows the first", second.Mine(now), true)
	check("the third does too", third.Mine(now), false)
	second.Tell()
	check("the third is told", third.Told(), true)
	second.Close()

	for what, w := range map[string]*teams.Watch{"without a directory": teams.OpenWatch("", ref), "zero": {}, "where there can be no file": teams.OpenWatch("/dev/null/none", ref)} {
		check(what+": it asks", w.Mine(now), true)
		w.Tell()
		w.Answered(now)
		check(what+": it is told", w.Told(), false)
		w.Close()
	}

	old, fresh := filepath.Join(dir, "ses_222222222222"), filepath.Join(dir, "ses_333333333333")
	for path, age := range map[string]time.Duration{old: teams.Retention + time.Hour, fresh: teams.Retention - time.Hour} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	teams.OpenWatch(dir, ref).Close()
	_, err := os.Stat(old)
	check("an old file is removed", errors.Is(err, fs.ErrNotExist), true)
	_, err = os.Stat(fresh)
	check("a file that may be in use is removed", err != nil, false)
}
