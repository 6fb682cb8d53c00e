package identity_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

var start = time.Date(2026, 7, 28, 9, 0, 0, 0, time.UTC)

var ada = identity.Attributes{
	User: "ada", Tenant: "acme", Email: "ada@acme.example", Roles: []string{"developer", "y"},
	Permissions: []string{"records:read", "records:write"}, Plan: "free", Scope: "acme/platform", Trust: "sandboxed",
}

var check = testkit.Check

// create makes a key that is valid for a year.
func create(t *testing.T, file string, a identity.Attributes) (string, identity.Entry) {
	t.Helper()
	key, entry, err := identity.Create(file, a, "", 365*24*time.Hour, start)
	check(t, err)
	return key, entry
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	check(t, err)
	return string(text)
}

// put writes a file like a key file.
func put(t testing.TB, file, text string) {
	t.Helper()
	check(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestCreate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config", "keys.yaml")
	key, entry := create(t, file, ada)
	if !regexp.MustCompile(`^atk_[a-z0-9]{8}_[A-Z2-7]{32}$`).MatchString(key) {
		t.Errorf("the key is %s", key)
	}
	want := identity.Entry{
		ID: strings.Split(key, "_")[1], SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(key))),
		Attributes: ada, Created: start, Expires: start.AddDate(1, 0, 0),
	}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	second, entry2, err := identity.Create(file, identity.Attributes{Roles: []string{}}, "pcp-x_1", 0, start.Add(time.Millisecond).In(time.FixedZone("x", 3600)))
	if err != nil || !strings.HasPrefix(second, "pcp-x_1_"+entry2.ID+"_") || !entry2.Expires.IsZero() {
		t.Errorf("got %s, %+v, %v", second, entry2, err)
	}
	got, err := identity.List(file)
	if diff := cmp.Diff([]identity.Entry{entry, entry2}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}

	text := read(t, file)
	for _, k := range []string{key, second} {
		if secret := k[strings.LastIndex(k, "_")+1:]; strings.Contains(text, secret) || len(secret) != 32 {
			t.Errorf("the key itself is in the file:\n%s", text)
		}
	}
	if !strings.HasPrefix(text, "# API keys of attache") || strings.Count(text, "# API keys") != 1 {
		t.Errorf("the file does not have the header once:\n%s", text)
	}
	modes(t, filepath.Dir(file))
}

// modes checks that nothing in dir is open to others and that no temporary file is left.
func modes(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		check(t, err)
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
			t.Errorf("%s has mode %o", entry.Name(), mode)
		}
		if name := entry.Name(); name != "keys.yaml" && name != "keys.yaml.lock" {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	tests := []struct {
		name       string
		attributes identity.Attributes
		prefix     string
		expiry     time.Duration
		says       string
	}{
		{"prefix", identity.Attributes{}, "a b", 0, `"a b" is not a prefix for keys: write at most 32 letters`},
		{"long prefix", identity.Attributes{}, strings.Repeat("a", 33), 0, "write at most 32"},
		{"expiry", identity.Attributes{}, "", -time.Hour, "give a longer time"},
		{"line break", identity.Attributes{User: "a\nb"}, "", 0, "leave out line breaks"},
		{"too long", identity.Attributes{User: strings.Repeat("a", 1025)}, "", 0, "at most 1024 bytes"},
		{"control character", identity.Attributes{Permissions: []string{"a\x1bb"}}, "", 0, "control characters"},
		{"space", identity.Attributes{Tenant: " a"}, "", 0, "space around it"},
		{"not utf-8", identity.Attributes{Email: "\xff"}, "", 0, "leave out"},
		{"empty role", identity.Attributes{Roles: []string{""}}, "", 0, "a role or permission is empty"},
		{"trust", identity.Attributes{Trust: "root"}, "", 0, `trust "root": make it direct or sandboxed`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			key, _, err := identity.Create(file, test.attributes, test.prefix, test.expiry, start)
			if key != "" || !strings.Contains(fmt.Sprint(err), test.says) || errors.Is(err, identity.ErrFile) {
				t.Errorf("got %q, %v; want an error that says %q", key, err, test.says)
			}
		})
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was created: %v", err)
	}
}

// No key is made if the file cannot be locked.
func TestCreateLocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	_, e := create(t, file, identity.Attributes{})
	check(t, os.Remove(file+".lock"))
	check(t, os.Mkdir(file+".lock", 0o700))
	before := read(t, file)
	if key, _, err := identity.Create(file, identity.Attributes{}, "", 0, start); key != "" || !errors.Is(err, identity.ErrFile) {
		t.Errorf("Create = %q, %v", key, err)
	}
	if err := identity.Revoke(file, e.ID, start); !errors.Is(err, identity.ErrFile) {
		t.Errorf("Revoke = %v", err)
	}
	if after := read(t, file); after != before {
		t.Errorf("the file is now %s", after)
	}
}

// Words that YAML could read as another type are read back unchanged.
func TestCreateKeepsOddWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	words := []string{
		"yes", "null", "~", "007", "1.5", "0x1f", "2026-07-28", "a: b", "a #b", "- a", "*a", "&a", "!a", "%a", "@a", "`a`", "[a]", "{a}", "a, b",
		`"a"`, "'a'", `a\b`, "ü 日本 👩\u200d💻", "|", ">", "?", "<<", "a:", "a[b]", "a{b}", "true", "=", ".inf", "---", strings.Repeat("x", 1024),
	}
	for _, word := range words {
		create(t, file, identity.Attributes{User: word, Scope: word, Roles: []string{word, "b"}, Permissions: words})
	}
	entries, err := identity.List(file)
	if err != nil || len(entries) != len(words) {
		t.Fatalf("got %d entries, %v", len(entries), err)
	}
	for i, word := range words {
		want := identity.Attributes{User: word, Scope: word, Roles: []string{word, "b"}, Permissions: words}
		if diff := cmp.Diff(want, entries[i].Attributes); diff != "" {
			t.Errorf("%q (-want +got)\n%s", word, diff)
		}
	}
}

func TestCreateKeepsComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	_, first := create(t, file, ada)
	text := read(t, file)
	text = strings.Replace(text, "    user: ada\n", "    user: ada # on leave\n", 1)
	text = strings.Replace(text, "  - id:", "  # the platform team\n  - id:", 1)
	put(t, file, text)
	create(t, file, identity.Attributes{User: "bob"})
	check(t, identity.Revoke(file, first.ID, start))
	got := read(t, file)
	for _, comment := range []string{"# API keys of attache", "# the platform team\n  - id: ", "user: ada # on leave\n"} {
		if strings.Count(got, comment) != 1 {
			t.Errorf("%q is not in the file once:\n%s", comment, got)
		}
	}
}

func TestCreateKeepsLoneComments(t *testing.T) {
	for _, text := range []string{"# the platform team\n\n  # ask ada\n", "# the platform team", "# the platform team\r\n# ask ada\r\n"} {
		file := filepath.Join(t.TempDir(), "keys.yaml")
		put(t, file, text)
		create(t, file, ada)
		if got := read(t, file); !strings.HasPrefix(got, text) {
			t.Errorf("%q became\n%s", text, got)
		}
	}
}

func TestCreateAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	const writers = 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, _, err := identity.Create(file, identity.Attributes{User: fmt.Sprint(i)}, "", 0, start); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			// A reader sees the file from before or after, never a part of it.
			if _, err := identity.List(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, err := identity.List(file)
	users := make(map[string]bool)
	for _, e := range entries {
		users[e.User] = true
	}
	if err != nil || len(entries) != writers || len(users) != writers {
		t.Errorf("%d entries of %d users, %v; want %d", len(entries), len(users), err, writers)
	}
	modes(t, filepath.Dir(file))
}

func TestCreateFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "link.yaml")
	create(t, file, ada)
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Skip(err)
	}
	create(t, link, ada)
	if entries, err := identity.List(file); err != nil || len(entries) != 2 {
		t.Errorf("got %d entries, %v; want both in the file that is linked to", len(entries), err)
	}
}

func TestRevoke(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	if err := identity.Revoke(file, "a", start); !errors.Is(err, identity.ErrFile) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	_, first := create(t, file, ada)
	key, second := create(t, file, ada)
	for _, at := range []time.Time{start.Add(time.Hour), start.Add(2 * time.Hour)} {
		check(t, identity.Revoke(file, second.ID, at))
	}
	second.Revoked = start.Add(time.Hour)
	got, err := identity.List(file)
	if diff := cmp.Diff([]identity.Entry{first, second}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	before := read(t, file)
	for _, id := range []string{"", "nobody", key} {
		err := identity.Revoke(file, id, start)
		if !errors.Is(err, identity.ErrUnknownKey) || strings.Contains(err.Error(), key[len(key)-32:]) {
			t.Errorf("Revoke(%q) = %v", id, err)
		}
	}
	if read(t, file) != before {
		t.Error("the file changed")
	}
}

func TestListRefuses(t *testing.T) {
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	const entry = "keys:\n  - id: a\n    sha256: " + sum + "\n"
	const pasted = "atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGHABCDEFGH"
	tests := []struct{ name, text, says string }{
		{"unknown key", entry + "    usr: ada\n", `:4:5: unknown key "usr": the file may have keys at the top and in an entry id, sha256,`},
		{"unknown key at the top", "kees: []\n", `:1:1: unknown key "kees"`},
		{"a key where a key's name belongs", entry + "    " + pasted + ": x\n", ":4:5: unknown key (too long to be shown)"},
		{"the key instead of its hash", "keys:\n  - id: a\n    sha256: " + pasted + "\n", ":3:13: sha256 is missing or is not 64 hexadecimal digits"},
		{"no hash", "keys:\n  - id: a\n", ": entry 1: sha256 is missing"},
		{"no id", "keys:\n  - sha256: " + sum + "\n", ": entry 1: id is missing"},
		{"an invalid id", "keys:\n  - id: a_b\n    sha256: " + sum + "\n", ":2:9: id is missing or has other characters"},
		{"an empty entry", "keys:\n  -\n", ": entry 1: id is missing"},
		{"an id twice", entry + strings.ReplaceAll(entry[6:], "9f", "9e"), ":4:9: this id or its sha256 already exists"},
		{"a key twice", entry + "  - id: b\n    sha256: " + strings.ToUpper(sum) + "\n", ":4:9: this id or its sha256"},
		{"a number for text", entry + "    user: 42\n", ":4:11: text is expected here: put it in quotes"},
		{"text for a list", entry + "    roles: admin\n", ":4:12: a list is expected here: write it as [one, two]"},
		{"an invalid time", entry + "    expires: tomorrow\n", ":4:14: is not a time: write it like"},
		{"the time that means never", entry + "    expires: 0001-01-01\n", ":4:14: is not a time"},
		{"a time that is of year 10000 in UTC", entry + "    expires: 9999-12-31T23:59:59-12:00\n", ":4:14: is not a time"},
		{"a time that is of year 1 in UTC", entry + "    expires: 0002-01-01T00:00:00+12:00\n", ":4:14: is not a time"},
		{"true for a time", entry + "    revoked: true\n", ":4:14: text is expected here"},
		{"a key of the mapping twice", entry + "    user: a\n    user: b\n", `:5:5: "user" appears twice: take one out`},
		{"two documents", entry + "---\n" + entry, ":5:1: a second document begins here"},
		{"a list", "- id: a\n", ":1:1: something else is expected here"},
		{"not YAML", "keys: [" + pasted + "\n", ":1:7: is not YAML that can be read"},
		{"not UTF-8", "keys: [\"\xff\"]\n", ":1:9: is not UTF-8"},
		{"line break in a word", entry + "    user: \"a\\nb\"\n", ":4:11: has line breaks"},
		{"nested deep", "keys: " + strings.Repeat("[", 100<<10), ":1:38: is nested more than 32 deep"},
		{"an anchor", "keys: &all []\n", ":1:7: anchors, aliases, tags,"},
		{"too large", strings.Repeat("# comment\n", 500_000), " is too large: it has more than 4 MiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keys.yaml")
			put(t, file, test.text)
			entries, err := identity.List(file)
			if entries != nil || !errors.Is(err, identity.ErrFile) || !strings.Contains(fmt.Sprint(err), file+test.says) {
				t.Errorf("got %v, %v; want an error that says %q", entries, err, test.says)
			}
			if strings.Contains(fmt.Sprint(err), pasted[13:]) || strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("the error contains too much: %v", err)
			}
			if _, _, err := identity.Create(file, ada, "", 0, start); !errors.Is(err, identity.ErrFile) || read(t, file) != test.text {
				t.Errorf("Create changed a file that it cannot read: %v", err)
			}
		})
	}
}

func TestListAccepts(t *testing.T) {
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	tests := []struct {
		name, text string
		want       []identity.Entry
	}{
		{"nothing", "", nil},
		{"comments", "# none yet\n", nil},
		{"no keys", "keys: []\n", nil},
		{"an empty value of keys", "keys:\n", nil},
		{
			"written by hand", "\ufeffkeys:\r\n- {id: A-1, sha256: " + strings.ToUpper(sum) + ", created: 2026-07-28, expires: \"2026-07-28T11:30:00.5+02:00\"}\r\n",
			[]identity.Entry{{ID: "A-1", SHA256: sum, Created: start.Add(-9 * time.Hour), Expires: start.Add(30 * time.Minute)}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keys.yaml")
			put(t, file, test.text)
			got, err := identity.List(file)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
			_, created := create(t, file, ada)
			got, err = identity.List(file)
			if diff := cmp.Diff(append(test.want, created), got); diff != "" || err != nil {
				t.Errorf("after Create: %v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestFileOpenToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no such modes")
	}
	file := filepath.Join(t.TempDir(), "keys.yaml")
	_, entry := create(t, file, ada)
	for _, mode := range []fs.FileMode{0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o666} {
		check(t, os.Chmod(file, mode))
		_, errList := identity.List(file)
		_, _, errCreate := identity.Create(file, ada, "", 0, start)
		for _, err := range []error{errList, errCreate, identity.Revoke(file, entry.ID, start)} {
			if !errors.Is(err, identity.ErrFile) || !strings.HasSuffix(fmt.Sprint(err), "run chmod 600 "+file) {
				t.Errorf("mode %o: got %v", mode, err)
			}
		}
	}
	check(t, os.Chmod(file, 0o400))
	if _, err := identity.List(file); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestFileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := identity.List(filepath.Join(dir, "gone")); !errors.Is(err, identity.ErrFile) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := identity.List(dir); !errors.Is(err, identity.ErrFile) || !strings.Contains(err.Error(), "is a directory: correct identity.keys_file") {
		t.Errorf("got %v", err)
	}
	put(t, filepath.Join(dir, "file"), "")
	if _, _, err := identity.Create(filepath.Join(dir, "file", "keys.yaml"), ada, "", 0, start); !errors.Is(err, identity.ErrFile) {
		t.Errorf("got %v", err)
	}
}
