package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// sharedKeysConfig caches answers of the database for longer than a test takes, so earlier changes come from
// notices.
const sharedKeysConfig = `store: {url: %q}
identity: {keys_file: keys.yaml, cache: 10h}
`

// accepted is the answer to an accepted client that asks for a session that does not exist.
const accepted = http.StatusNotFound

// Keys are imported from a key file to the database, and a front of a machine without that file uses them. A
// revoked key is refused there, also while the database is down. A key that was not used before then
// identifies nobody.
func TestKeysInTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	first, second := t.TempDir(), t.TempDir()
	url := cluster.Database()
	for _, dir := range []string{first, second} {
		text := fmt.Sprintf(sharedKeysConfig, url)
		if dir == second {
			text = strings.Replace(text, "keys_file: keys.yaml, ", "", 1)
		}
		attachetest.WriteFile(t, filepath.Join(dir, "config.yaml"), text)
		attachetest.WriteFile(t, filepath.Join(dir, "files.yaml"), "identity: {keys_file: keys.yaml}\n")
	}
	key := func(dir, config string, args ...string) string {
		t.Helper()
		return withStore(t, filepath.Join(dir, config), args...)
	}
	key(first, "config.yaml", "store", "migrate")
	ada := key(first, "files.yaml", "key", "create", "--user", "ada")
	bob := key(first, "files.yaml", "key", "create", "--user", "bob")
	key(first, "config.yaml", "key", "import")
	eve := key(second, "config.yaml", "key", "create", "--user", "eve")

	attachetest.WriteFile(t, filepath.Join(second, "eve.key"), eve)
	explained := "looked up"
	for strings.Contains(explained, "looked up") { // the database is slow
		explained = key(second, "config.yaml", "explain", "--tool", "x", "--api-key-file", filepath.Join(second, "eve.key"))
	}
	if !strings.Contains(explained, "principal.user  eve") {
		t.Errorf("explain does not know the owner of the key:\n%s", explained)
	}

	front := serveEcho(t, filepath.Join(second, "config.yaml"))
	ask := func(key string) int { // opens no session
		t.Helper()
		if key != "" {
			key = "Bearer " + key
		}
		return endNoSession(t, front, key)
	}
	want := func(who, key string, status int) {
		t.Helper()
		got := ask(key)
		for got == http.StatusServiceUnavailable && got != status { // the database is slow
			got = ask(key)
		}
		if got != status {
			t.Errorf("%s gets %d, want %d", who, got, status)
		}
	}
	want("nobody", "", http.StatusUnauthorized)
	want("an unknown key", "atk_nobody00_AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH", http.StatusUnauthorized)
	want("ada", ada, accepted)
	want("bob", bob, accepted)
	key(first, "config.yaml", "key", "revoke", strings.Split(bob, "_")[1])
	for ask(bob) != http.StatusUnauthorized { // until the front hears of it
	}
	want("ada", ada, accepted)

	cluster.Kill()
	if out, err := exec.Command("attache", "key", "list", "--config", filepath.Join(first, "config.yaml")).CombinedOutput(); err == nil || !strings.Contains(string(out), "the database is not available") {
		t.Errorf("attache key list without the database: %v, %s", err, out)
	}
	want("ada, without the database", ada, accepted)
	want("bob, without the database", bob, http.StatusUnauthorized)
	want("eve, without the database", eve, http.StatusServiceUnavailable)
	cluster.Start()
	for ask(eve) != accepted { // until the front asks again
	}
	want("bob, with the database again", bob, http.StatusUnauthorized)
}

// A front that starts while its database is away finds out later whether the database has keys. Until then
// clients get 503.
func TestKeysUnknownAtTheStart(t *testing.T) {
	t.Parallel()
	for _, hasKeys := range []bool{false, true} {
		cluster := pgtest.New(t, os.Getenv)
		config := filepath.Join(t.TempDir(), "config.yaml")
		store := fmt.Sprintf("store: {url: %q}\n", cluster.Database())
		attachetest.WriteFile(t, config, store)
		withStore(t, config, "store", "migrate")
		key := "atk_nobody00_AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH"
		if hasKeys {
			key = withStore(t, config, "key", "create", "--user", "ada")
		}
		cluster.Kill()
		front := serveEcho(t, config)
		want := func(when, authorization string, status int) {
			t.Helper()
			got := http.StatusServiceUnavailable
			for again := true; again; again = status != got && got == http.StatusServiceUnavailable {
				got = endNoSession(t, front, authorization)
			}
			if got != status {
				t.Errorf("with keys %t, %s, %.10q gets %d, want %d", hasKeys, when, authorization, got, status)
			}
		}
		want("without the database", "", http.StatusServiceUnavailable)
		want("without the database", "Bearer "+key, http.StatusServiceUnavailable)
		ready := func(front string, status int) {
			t.Helper()
			response, err := http.Get(strings.TrimSuffix(front, "/mcp") + "/readyz")
			check(t, err)
			_ = response.Body.Close()
			if response.StatusCode != status {
				t.Errorf("with keys %t, /readyz answers %d, want %d", hasKeys, response.StatusCode, status)
			}
		}
		ready(front, http.StatusServiceUnavailable)
		// A front also needs the database if it has a key file: that is only for attache key import.
		imported := filepath.Join(filepath.Dir(config), "imported.yaml")
		attachetest.WriteFile(t, imported, store+"identity: {keys_file: keys.yaml}\n")
		ready(serveEcho(t, imported), http.StatusServiceUnavailable)
		cluster.Start()
		nobody := accepted
		if hasKeys {
			nobody = http.StatusUnauthorized
		}
		want("later", "", nobody)
		want("later", "Basic "+key, nobody)
		want("later", "Bearer "+key, accepted)
		ready(front, http.StatusOK)
		cluster.Kill()
		ready(front, http.StatusOK)
	}
}

// If an issuer is named while it is not known whether the database has keys, the front does not let everybody in
// when it turns out that the database has none.
func TestIssuerBeforeKeysAreKnown(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	config := filepath.Join(t.TempDir(), "config.yaml")
	store := fmt.Sprintf("store: {url: %q}\n", cluster.Database())
	attachetest.WriteFile(t, config, store)
	withStore(t, config, "store", "migrate")
	cluster.Kill()
	front := serveEcho(t, config)
	want := func(status int) {
		t.Helper()
		got, end := 0, time.Now().Add(patience)
		for again := true; again; again = status != got && got == http.StatusServiceUnavailable && time.Now().Before(end) {
			got = endNoSession(t, front, "")
		}
		if got != status {
			t.Errorf("a client without a credential gets %d, want %d", got, status)
		}
	}
	want(http.StatusServiceUnavailable)
	attachetest.WriteFile(t, config, store+"identity: {jwt: {issuer: 'https://127.0.0.1:1/', audience: attache, jwks: 'https://127.0.0.1:1/keys'}}\n")
	want(http.StatusUnauthorized)
	cluster.Start()
	withStore(t, config, "key", "list") // the database answers
	want(http.StatusUnauthorized)
}

// endNoSession asks a front to end a session that does not exist, and returns the status of the answer.
func endNoSession(t *testing.T, front, authorization string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, front, nil)
	check(t, err)
	request.Header.Set("Mcp-Session-Id", "none")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

// withStore runs a command of attache, again while the database does not answer, as on a busy machine.
// It returns the output.
func withStore(t *testing.T, config string, args ...string) string {
	t.Helper()
	for {
		cmd := exec.Command("attache", append(args, "--config", config)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		switch {
		case err == nil:
			return strings.TrimSpace(string(out))
		case !strings.Contains(stderr.String(), "the database is not available"):
			t.Fatalf("attache %v: %v\n%s", args, err, stderr.String())
		}
	}
}
