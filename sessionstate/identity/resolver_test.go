package identity_test

import (
	"context"
	"errors"
	"fmt"
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

// A resolverTest is a Resolver with a file and a clock for tests.
type resolverTest struct {
	*identity.Resolver
	t    *testing.T
	file string
	now  time.Time
}

func newResolverTest(t *testing.T) *resolverTest {
	r := &resolverTest{t: t, file: filepath.Join(t.TempDir(), "keys.yaml"), now: start}
	r.Resolver = identity.New(identity.Options{File: r.file, Now: func() time.Time { return r.now }})
	return r
}

// want checks that resolving key returns err, and that the error does not contain the key.
func (r *resolverTest) want(key string, err error) *sessionstate.Principal {
	r.t.Helper()
	p, got := r.Resolve(r.t.Context(), key)
	if !errors.Is(got, err) || (p == nil) != (err != nil) {
		r.t.Fatalf("got %v, %v; want %v", p, got, err)
	}
	if secret := key[strings.LastIndex(key, "_")+1:]; len(secret) == 32 && strings.Contains(fmt.Sprintf("%v %+v %#v", got, got, r.Resolver), secret) {
		r.t.Fatalf("the error contains the key: %v", got)
	}
	return p
}

func TestResolve(t *testing.T) {
	r := newResolverTest(t)
	key, entry := create(t, r.file, ada)
	bob, _ := create(t, r.file, identity.Attributes{User: "bob"})

	got := r.want(key, nil)
	want := &sessionstate.Principal{
		KeyID: entry.ID, User: "ada", Tenant: "acme", Email: "ada@acme.example", Roles: ada.Roles, Permissions: ada.Permissions,
		Plan: "free", Scope: "acme/platform", Trust: "sandboxed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.want(" "+key+"\n", nil) != got {
		t.Error("the same key has another principal")
	}
	if r.want(bob, nil).User != "bob" {
		t.Error("keys are mixed up")
	}
	for _, wrong := range []string{
		"", " ", "atk", key + "A", key[:len(key)-1], "x" + key, strings.ToLower(key), entry.ID, entry.SHA256,
		"atk_" + entry.ID + "_" + strings.Repeat("A", 32), bob[:13] + key[13:], strings.Repeat("k", 1<<20),
	} {
		r.want(wrong, identity.ErrUnknownKey)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := r.Resolve(ctx, key); p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestResolveExpired(t *testing.T) {
	r := newResolverTest(t)
	key, _, err := identity.Create(r.file, ada, "", time.Second*30, start)
	check(t, err)
	r.want(key, nil)
	r.now = start.Add(30*time.Second - 1)
	r.want(key, nil)
	r.now = start.Add(30 * time.Second) // within the cache time
	r.want(key, identity.ErrExpired)
}

func TestResolveRevoked(t *testing.T) {
	r := newResolverTest(t)
	key, entry := create(t, r.file, ada)
	r.want(key, nil)
	check(t, identity.Revoke(r.file, entry.ID, start.Add(time.Hour)))
	r.now = start.Add(identity.DefaultCache - 1)
	r.want(key, nil)
	r.now = start.Add(identity.DefaultCache)
	r.want(key, identity.ErrRevoked)
}

// A new key works immediately, because its owner tries it at once.
func TestResolveNewKey(t *testing.T) {
	r := newResolverTest(t)
	old, _ := create(t, r.file, ada)
	r.want(old, nil)
	for range 3 {
		key, _ := create(t, r.file, identity.Attributes{User: "new"})
		r.want(key, nil)
	}
	r.want(old, nil)
}

// The file is read only if the cache time is over or it has changed: a change that keeps size and
// time is not detected before.
func TestResolveReadsSeldom(t *testing.T) {
	r := newResolverTest(t)
	key, entry := create(t, r.file, ada)
	r.want(key, nil)
	info, err := os.Stat(r.file)
	check(t, err)
	text := read(t, r.file)
	put(t, r.file, strings.Replace(text, entry.SHA256, strings.Repeat("a", 64), 1))
	check(t, os.Chtimes(r.file, time.Time{}, info.ModTime()))
	r.want("atk_no_key", identity.ErrUnknownKey)
	r.want(key, nil)
	r.now = start.Add(identity.DefaultCache)
	r.want(key, identity.ErrUnknownKey)
	// The key is unknown, so the file is checked for changes.
	put(t, r.file, text+"# changed\n")
	r.want(key, nil)
}

// If the file is missing or open to others, no key is valid.
func TestResolveFileLost(t *testing.T) {
	r := newResolverTest(t)
	r.want("atk_a_b", identity.ErrFile)
	key, _ := create(t, r.file, ada)
	r.want(key, nil)
	text := read(t, r.file)

	lose := map[string]func() error{
		"gone":    func() error { return os.Remove(r.file) },
		"garbled": func() error { return os.WriteFile(r.file, []byte("keys: 5"), 0o600) },
	}
	if runtime.GOOS != "windows" {
		lose["open"] = func() error { return os.Chmod(r.file, 0o644) }
	}
	for name, f := range lose {
		if err := f(); err != nil {
			t.Fatal(name, err)
		}
		r.want(key, nil) // within the cache time
		r.now = r.now.Add(identity.DefaultCache)
		r.want(key, identity.ErrFile)
		r.want(key, identity.ErrFile)
		if err := os.Remove(r.file); err != nil && name != "gone" {
			t.Fatal(err)
		}
		put(t, r.file, text)
		r.want(key, nil)
	}
}

func TestResolveUnknownTrustMeansSandboxed(t *testing.T) {
	r := newResolverTest(t)
	key, _ := create(t, r.file, ada)
	put(t, r.file, strings.Replace(read(t, r.file), "trust: sandboxed", "trust: total", 1))
	if got := r.want(key, nil).Trust; got != sessionstate.Sandboxed {
		t.Errorf("got %s", got)
	}
}

func TestResolveAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	resolver := identity.New(identity.Options{File: file, Cache: time.Nanosecond})
	key, entry := create(t, file, ada)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if p, err := resolver.Resolve(t.Context(), key); err != nil || p.KeyID != entry.ID {
				t.Errorf("got %v, %v", p, err)
			}
			if i%5 == 0 {
				if _, _, err := identity.Create(file, ada, "", 0, start); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkResolve(b *testing.B) {
	file := filepath.Join(b.TempDir(), "keys.yaml")
	key, _, err := identity.Create(file, ada, "", 0, start)
	check(b, err)
	resolver := identity.New(identity.Options{File: file, Cache: time.Hour})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := resolver.Resolve(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "attache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "keys.yaml")
	key, entry, err := identity.Create(file, identity.Attributes{User: "ada", Tenant: "acme"}, "", 0, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}

	resolver := identity.New(identity.Options{File: file, Cache: time.Nanosecond})
	principal, err := resolver.Resolve(context.Background(), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(principal.User, principal.Tenant)

	if err := identity.Revoke(file, entry.ID, time.Now()); err != nil {
		fmt.Println(err)
	}
	_, err = resolver.Resolve(context.Background(), key)
	fmt.Println(errors.Is(err, identity.ErrRevoked))
	// Output:
	// ada acme
	// true
}

// If the file becomes invalid, its last keys stay valid, which is reported once. If it is missing
// or open to others, they do not.
func TestResolveKeepsTheLastKeys(t *testing.T) {
	r := newResolverTest(t)
	var reports []error
	r.Resolver = identity.New(identity.Options{
		File: r.file, Cache: time.Minute, Now: func() time.Time { return r.now },
		Kept: func(err error) { reports = append(reports, err) },
	})
	key, entry := create(t, r.file, ada)
	good, err := os.ReadFile(r.file)
	check(t, err)
	rewrite := func(text string, mode os.FileMode) {
		t.Helper()
		r.now = r.now.Add(2 * time.Minute)
		check(t, errors.Join(os.WriteFile(r.file, []byte(text), mode), os.Chmod(r.file, mode)))
	}
	rewrite("keys: [", 0o600)
	r.want(key, identity.ErrFile) // the file was never valid
	rewrite(string(good), 0o600)
	r.want(key, nil)
	for range 2 {
		rewrite("keys: [", 0o600)
		r.want(key, nil)
	}
	if len(reports) != 1 || !errors.Is(reports[0], identity.ErrFile) {
		t.Errorf("reports %v", reports)
	}
	// A key may have been revoked with the same edit, so this ends after Keep.
	r.now = r.now.Add(10 * identity.DefaultCache)
	for range 2 {
		rewrite("keys: {", 0o600)
		r.want(key, identity.ErrFile)
	}
	rewrite(string(good), 0o600)
	r.want(key, nil)
	rewrite("keys: [", 0o600)
	r.want(key, nil)
	if len(reports) != 2 {
		t.Errorf("reports %v", reports)
	}
	check(t, os.WriteFile(r.file, good, 0o600))
	check(t, identity.Revoke(r.file, entry.ID, r.now))
	r.want(key, nil) // within the cache time
	check(t, r.Refresh())
	r.want(key, identity.ErrRevoked)
	if runtime.GOOS != "windows" {
		rewrite(string(good), 0o644)
		r.want(key, identity.ErrFile)
	}
	check(t, os.Remove(r.file))
	r.now = r.now.Add(2 * time.Minute)
	r.want(key, identity.ErrFile)
}
