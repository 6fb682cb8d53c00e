//go:build unix

package assembly

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Git finds the root from where a link leads to. A root keeps the name by which the shell reached it.
func TestGitRootBehindLink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	at := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(err, os.MkdirAll(at("shop/.git"), 0o755), os.MkdirAll(at("lib/.git"), 0o755), os.MkdirAll(at("lib/src"), 0o755),
		os.MkdirAll(at("none"), 0o755), os.MkdirAll(at("shop/app"), 0o755),
		os.Symlink(at("lib/src"), at("shop/vendor")), os.Symlink(at("none"), at("shop/out")), os.Symlink(at("shop"), at("short")))
	check(t, err)
	for in, want := range map[string]string{
		"shop/app": at("shop"), "shop/vendor": at("lib"), "shop/out": "", "short/app": at("short"), "lib/src": at("lib"),
	} {
		t.Chdir(at(in))
		if got := gitRoot().Value; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
