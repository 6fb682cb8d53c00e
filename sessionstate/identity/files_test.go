package identity_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// putOld writes file with a modification time of age ago.
func putOld(t *testing.T, file, text string, age time.Duration) {
	t.Helper()
	put(t, file, text)
	check(t, os.Chtimes(file, time.Time{}, time.Now().Add(-age)))
}

func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	token := identity.TokenFile(file)
	want := func(text string, err error, says string) {
		t.Helper()
		got, gotErr := token()
		if got != text || !errors.Is(gotErr, err) || !strings.Contains(fmt.Sprint(gotErr), says) {
			t.Fatalf("got %q, %v; want %q, %v with %q", got, gotErr, text, err, says)
		}
		if strings.Contains(fmt.Sprint(gotErr), secret) {
			t.Fatalf("the error contains the token: %v", gotErr)
		}
	}
	want("", identity.ErrTokenFile, "write it or correct the path of the token file")
	want("", fs.ErrNotExist, "")
	putOld(t, file, "\n first.a.b \r\n", time.Hour)
	want("first.a.b", nil, "")
	want("first.a.b", nil, "")
	putOld(t, file, "second.a.b", time.Minute) // with another time
	want("second.a.b", nil, "")
	putOld(t, file, "third.ab.b", 2*time.Hour)
	want("third.ab.b", nil, "")
	put(t, file, "fourth.a.b") // so new that it is read each time
	want("fourth.a.b", nil, "")
	info, err := os.Stat(file)
	check(t, err)
	put(t, file, "fifth.ab.b") // with the same size and time
	check(t, os.Chtimes(file, time.Time{}, info.ModTime()))
	want("fifth.ab.b", nil, "")

	// Replaced by a rename, as Kubernetes does it.
	next := file + ".next"
	putOld(t, next, "sixth.ab.b", 2*time.Hour)
	check(t, os.Rename(next, file))
	want("sixth.ab.b", nil, "")
	putOld(t, file, "\ufeffseventh.a.b\r\n", time.Hour)
	want("seventh.a.b", nil, "")

	for text, says := range map[string]string{
		"":                            "is empty: write the token into it",
		" \n":                         "is empty",
		"TOKEN=" + secret + "\nb":     "something other than one token",
		secret + " b":                 "something other than one token",
		secret + "\x00":               "something other than one token",
		secret + "ä":                  "something other than one token",
		strings.Repeat("x", 32<<10+1): "is too large: it has more than 32 KiB",
	} {
		putOld(t, file, text, time.Hour)
		want("", identity.ErrTokenFile, says)
	}
	if runtime.GOOS != "windows" {
		putOld(t, file, "last.a.b", time.Hour)
		want("last.a.b", nil, "")
		check(t, os.Chmod(file, 0o640))
		want("", identity.ErrTokenFile, "is open to others (mode 0640): run chmod 600 "+file)
		check(t, os.Chmod(file, 0o400))
		want("last.a.b", nil, "")
	}
	check(t, os.Remove(file))
	want("", fs.ErrNotExist, "")
}

func TestTokenFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	putOld(t, filepath.Join(dir, "one"), "first", time.Hour)
	putOld(t, filepath.Join(dir, "two"), "other", time.Hour)
	token := identity.TokenFile(file)
	for name, want := range map[string]string{"one": "first", "two": "other"} {
		_ = os.Remove(file)
		if err := os.Symlink(name, file); err != nil {
			t.Skip(err)
		}
		if got, err := token(); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

func TestTokenFileAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	put(t, file, "one")
	token := identity.TokenFile(file)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if got, err := token(); got != "one" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
}

// full is a session file with all fields.
var full = identity.SessionFile{
	Principal: &sessionstate.Principal{
		KeyID: "session file", User: "ada", Tenant: "acme", Email: "ada@acme.example", Roles: []string{"developer", "on call"},
		Permissions: []string{"records:read"}, Plan: "pro", Scope: "acme/platform", Trust: sessionstate.Direct,
	},
	Trust: sessionstate.Direct, Workspace: "/home/ada/src", WorkspaceID: "ws-42", Session: "7c1f",
}

func TestReadSessionFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		full.Workspace = `C:\src`
	}
	path := strings.ReplaceAll(full.Workspace, `\`, `\\`)
	ada := &sessionstate.Principal{KeyID: "session file", User: "ada"}
	tests := []struct {
		name, text string
		want       identity.SessionFile
	}{
		{
			"YAML", "# by the host\nuser: ada\ntenant: acme\nemail: ada@acme.example\nroles: [developer, on call]\npermissions:\n  - records:read\nplan: pro\n" +
				"scope: acme/platform\ntrust: direct\nworkspace: \"" + path + "\"\nworkspace_id: ws-42\nsession: \"7c1f\"\n", full,
		},
		{
			"JSON", "\ufeff{\n\t\"user\"\t: \"a\\u0064a\", \"tenant\": \"acme\", \"email\": \"ada@acme.example\",\r\n\t\"roles\": [\"developer\", \"on call\"], \"permissions\": [\"records:read\"],\n" +
				"\"plan\": \"pro\", \"scope\": \"acme\\/platform\", \"trust\": \"Direct\", \"workspace\": \"" + path + "\", \"workspace_id\": \"ws-42\", \"session\": \"7c1f\"}\n", full,
		},
		{"YAML in braces", "{user: ada}", identity.SessionFile{Principal: ada}},
		{"only a session", "session: s", identity.SessionFile{Session: "s"}},
		{"trust names nobody", "trust: total\n", identity.SessionFile{Trust: sessionstate.Sandboxed}},
		{"null is absent", `{"user": "ada", "tenant": null, "roles": null, "permissions": [null, ""]}`, identity.SessionFile{Principal: ada}},
		{"a digit in quotes", "user: \"007\"", identity.SessionFile{Principal: &sessionstate.Principal{KeyID: "session file", User: "007"}}},
		{"only roles", "roles: [a]", identity.SessionFile{Principal: &sessionstate.Principal{KeyID: "session file", Roles: []string{"a"}}}},
		{"only permissions", "permissions: [a]", identity.SessionFile{Principal: &sessionstate.Principal{KeyID: "session file", Permissions: []string{"a"}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "session")
			put(t, file, test.text)
			got, err := identity.ReadSessionFile(file)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestReadSessionFileRefuses(t *testing.T) {
	tests := []struct{ name, text, says string }{
		{"empty", "", " it says nothing: write at least one of user, tenant,"},
		{"comments", "# soon\n", " it says nothing"},
		{"empty object", "{}", " it says nothing"},
		{"unknown key", "user: a\nusr: b\n", `2:1: unknown key "usr": the file may have user, tenant,`},
		{"unknown member", `{"User": "a"}`, `1:2: unknown key "User": the file may have user,`},
		{"a secret for a key", secret + secret + ": x", "1:1: unknown key (too long to be shown)"},
		{"a secret for a member", `{"` + secret + secret + `": "x"}`, "1:2: unknown key (too long to be shown)"},
		{"key twice", "user: a\nuser: " + secret + "\n", `2:1: "user" appears twice: take one out`},
		{"member twice", `{"user": "a", "us\u0065r": "` + secret + `"}`, `1:15: "user" appears twice: take one out`},
		{"number", "user: 42", "1:7: text is expected here: put it in quotes"},
		{"number in JSON", `{"user": 42}`, "1:10: text is expected here: put it in quotes"},
		{"object in JSON", `{"user": {}}`, "1:10: text is expected here"},
		{"true", "trust: true", "1:8: text is expected here"},
		{"text for a list", "roles: " + secret, "1:8: a list is expected here: write it as [one, two]"},
		{"text for a list in JSON", `{"roles": "` + secret + `"}`, "1:11: a list is expected here: write it as [one, two]"},
		{"number in a list", `{"roles": ["a", 1]}`, "1:17: text is expected here"},
		{"list", "- user: a\n", "1:1: something else is expected here"},
		{"list in JSON", `["user"]`, "1:1: something else is expected here"},
		{"text in JSON", `"` + secret + `"`, "1:1: something else is expected here"},
		{"broken", `{"user": "` + secret, ""},
		{"two documents", "user: a\n---\nuser: b\n", ":3:1: a second document begins here"},
		{"two objects", `{"user": "a"} {"user": "b"}`, ""},
		{"line break", `{"user": "a\nb"}`, "1:10: has line breaks"},
		{"line break in YAML", `user: "a\nb"`, "1:7: has line breaks"},
		{"NUL", `{"session": "a\u0000"}`, "1:13: has line breaks, control characters"},
		{"incomplete character", `{"user": "a\ud800"}`, "1:10: has line breaks, control characters, invalid characters"},
		{"replacement character in a list", "roles: [\"\ufffd\"]", "1:9: has line breaks, control characters, invalid characters"},
		{"not UTF-8", "user: \xff", " is not UTF-8"},
		{"relative", "workspace: src/api", "1:12: workspace is not an absolute path: write it from the root on"},
		{"relative in JSON", `{"workspace": "../x"}`, " workspace is not an absolute path"},
		{"nested deep", strings.Repeat("[", 60<<10), ":1:33: is nested more than 32 deep"},
		{"nested deep in JSON", `{"user":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", "is nested more than 32 deep"},
		{"too large", "#" + strings.Repeat("x", 64<<10), "has more than 64 KiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "session")
			put(t, file, test.text)
			got, err := identity.ReadSessionFile(file)
			if !errors.Is(err, identity.ErrSessionFile) || !strings.Contains(fmt.Sprint(err), test.says) || !strings.Contains(fmt.Sprint(err), file) {
				t.Errorf("got %v; want an error that says %q", err, test.says)
			}
			if (got != identity.SessionFile{}) {
				t.Errorf("a part of it was returned: %+v", got)
			}
			quiet(t, "", err)
		})
	}
}

func TestReadSessionFileKind(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "session"), filepath.Join(dir, "link")
	refuses := func(path, says string) {
		t.Helper()
		if got, err := identity.ReadSessionFile(path); !errors.Is(err, identity.ErrSessionFile) || !strings.Contains(fmt.Sprint(err), says) || got.Principal != nil {
			t.Errorf("got %+v, %v; want an error that says %q", got, err, says)
		}
	}
	if _, err := identity.ReadSessionFile(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	refuses(file, "write it or correct the path of the session file")
	refuses(dir, "is a directory: correct the path of the session file")
	put(t, file, "user: ada")
	if runtime.GOOS == "windows" {
		return
	}
	check(t, os.Symlink(file, link))
	refuses(link, "is a symbolic link")
	for _, mode := range []fs.FileMode{0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666} {
		check(t, os.Chmod(file, mode))
		refuses(file, fmt.Sprintf("is open to others (mode %04o): run chmod 600 %s", mode, file))
	}
	for _, mode := range []fs.FileMode{0o600, 0o400} {
		check(t, os.Chmod(file, mode))
		if got, err := identity.ReadSessionFile(file); err != nil || got.Principal.User != "ada" {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	// Only root can change the owner of a file.
	if os.Geteuid() == 0 {
		check(t, os.Chown(file, 12345, -1))
		refuses(file, "belongs to another user: make it yours or root's")
	}
}
