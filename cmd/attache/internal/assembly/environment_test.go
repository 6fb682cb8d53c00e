package assembly

import (
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A session keeps the environment of its first server when the configuration is read again, but not the layers of
// the configuration before.
func TestFixedEnvironment(t *testing.T) {
	settings := func(value string) *config.Settings {
		s := config.DefaultSettings("")
		s.Server.Env = map[string]string{"A": value}
		return s
	}
	before, err := Compile(Options{Log: slog.New(slog.DiscardHandler)}, settings("before"))
	check(t, err)
	conn := before.Connect(ConnOptions{Client: &Client{}})
	env := conn.FixedEnvironment(nil)
	old := weak.Make(before)
	after, err := before.Reload(settings("after"))
	check(t, err)
	runtime.GC()
	if old.Value() != nil {
		t.Error("the session keeps the configuration before")
	}
	if got := env(); !slices.Contains(got, "A=before") {
		t.Errorf("the next server gets %q", got)
	}
	if got := conn.Environment(nil); !slices.Contains(got, "A=after") {
		t.Errorf("a new session gets %q", got)
	}
	conn.Close()
	after.Close()
}

// On Windows, a secret is withheld also if the configuration writes its name with other capital letters.
func TestWithoutAnotherCase(t *testing.T) {
	want := []string{"My_Token=x"}
	if runtime.GOOS == "windows" {
		want = nil
	}
	if got := Without([]string{"My_Token=x"}, "MY_TOKEN"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
