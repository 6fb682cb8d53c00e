package include

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/attache-mcp/attache/internal/testkit"
)

// A site serves files over https and counts the requests.
type site struct {
	*httptest.Server
	files    map[string]string
	requests int
	down     bool
}

func newSite(t *testing.T) *site {
	s := &site{files: map[string]string{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		body, ok := s.files[r.URL.Path]
		if !ok || s.down {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func read(t *testing.T, f *Fetcher, s Source) (content, note, failure string) {
	t.Helper()
	got, note, err := f.Read(context.Background(), s)
	if err != nil {
		failure = err.Error()
	}
	return string(got), note, failure
}

// Content with a digest is fetched once and then read from the copy.
func TestDigest(t *testing.T) {
	web := newSite(t)
	web.files["/team.yaml"] = "log: {}\n"
	f := &Fetcher{Dir: filepath.Join(t.TempDir(), "a", "b"), Client: web.Client()}
	s := Source{URL: web.URL + "/team.yaml", Digest: digest("log: {}\n")}
	for range 2 {
		if content, note, failure := read(t, f, s); content != "log: {}\n" || note+failure != "" {
			t.Errorf("%q, %q, %q", content, note, failure)
		}
	}
	if web.requests != 1 {
		t.Errorf("%d requests, want 1", web.requests)
	}

	// A copy that was changed on the disk is not used, nor is other content.
	testkit.Check(t, os.WriteFile(f.path(s)+".yaml", []byte("evil: {}\n"), 0o600))
	if content, _, failure := read(t, f, s); content != "log: {}\n" || failure != "" {
		t.Errorf("a changed copy: %q, %q", content, failure)
	}
	s.Digest = digest("other")
	if content, _, failure := read(t, f, s); content != "" || !strings.Contains(failure, "its digest is "+digest("log: {}\n")) {
		t.Errorf("another digest: %q, %q", content, failure)
	}
}

// Signed content is updated from its address. The last valid copy is used if the address fails, or
// its content has no valid signature or an older one.
func TestKey(t *testing.T) {
	web := newSite(t)
	public, private, err := minisign.GenerateKey(nil)
	testkit.Check(t, err)
	publish := func(content string, signed int64) {
		web.files["/team.yaml"] = content
		web.files["/team.yaml.minisig"] = string(minisign.SignWithComments(private, []byte(content), "timestamp:"+strconv.FormatInt(signed, 10), ""))
	}
	key := strings.Split(public.String(), "\n")
	s := Source{URL: web.URL + "/team.yaml", Key: key[len(key)-1]}
	now := time.Now()
	f := &Fetcher{Dir: t.TempDir(), Client: web.Client(), Now: func() time.Time { return now }}
	expect := func(content, note string) {
		t.Helper()
		got, said, failure := read(t, f, s)
		if got != content || (note == "") != (said == "") || !strings.Contains(said, note) || failure != "" {
			t.Errorf("%q, %q, %q; want %q with %q", got, said, failure, content, note)
		}
	}

	publish("one", 100)
	expect("one", "")
	publish("two", 200)
	expect("one", "") // the copy is young
	now = now.Add(maxAge + time.Minute)
	expect("two", "")
	now = time.Now().Add(-2 * maxAge) // the clock was ahead when the copy was written
	publish("two again", 200)
	expect("two again", "")
	now = time.Now().Add(maxAge + time.Minute)
	publish("one", 100)
	expect("two again", "older than that of the copy")
	publish("three", 300)
	web.files["/team.yaml"] = "evil"
	expect("two again", "not by the key configured")
	web.down = true
	expect("two again", "status 503")
	f.Dir = t.TempDir()
	if content, _, failure := read(t, f, s); content != "" || !strings.Contains(failure, "status 503") {
		t.Errorf("without a copy: %q, %q", content, failure)
	}
}

func TestCheck(t *testing.T) {
	good := "sha256:" + strings.Repeat("0", 64)
	for want, s := range map[string]Source{
		"not an https address": {URL: "http://host/x", Digest: good},
		`"https:///x" is not`:  {URL: "https:///x", Digest: good},
		"write what sha256sum": {URL: "https://host/x", Digest: strings.Repeat("0", 64)},
		"user name":            {URL: "https://u:p@host/x", Digest: good},
		"one of them confirms": {URL: "https://host/x"},
		"not both":             {URL: "https://host/x", Digest: good, Key: "RW"},
		"64 hexadecimal":       {URL: "https://host/x", Digest: "sha256:00"},
		"no public key":        {URL: "https://host/x", Key: "ssh-ed25519 AAAA"},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	if err := (Source{URL: "https://host/x", Digest: good}).Check(); err != nil {
		t.Error(err)
	}
}

// The query of an address may contain a token, which no message has.
func TestQueryIsHidden(t *testing.T) {
	web := newSite(t)
	public, private, err := minisign.GenerateKey(nil)
	testkit.Check(t, err)
	web.files["/team.yaml"] = "log: {}\n"
	key := strings.Split(public.String(), "\n")
	for _, s := range []Source{
		{URL: web.URL + "/team.yaml?token=s3cret", Digest: digest("other")},
		{URL: web.URL + "/team.yaml?token=s3cret", Key: key[len(key)-1]},
		{URL: web.URL + "/none.yaml?token=s3cret", Digest: digest("other")},
		{URL: "http://host/team.yaml?token=s3cret", Digest: digest("other")},
	} {
		if _, _, failure := read(t, &Fetcher{Client: web.Client()}, s); !strings.Contains(failure, ".yaml?[hidden]") || strings.Contains(failure, "s3cret") {
			t.Error(failure)
		}
	}
	now := time.Now()
	f := &Fetcher{Dir: t.TempDir(), Client: web.Client(), Now: func() time.Time { return now }}
	s := Source{URL: web.URL + "/team.yaml?token=s3cret", Key: key[len(key)-1]}
	signed := file{[]byte("log: {}\n"), minisign.Sign(private, []byte("log: {}\n"))}
	testkit.Check(t, f.store(s, signed))
	now, web.down = now.Add(2*maxAge), true
	if content, note, _ := read(t, f, s); content == "" || !strings.Contains(note, ".yaml?[hidden]") || strings.Contains(note, "s3cret") {
		t.Errorf("%q, %s", content, note)
	}
}

// Content that is too large, and a redirect to another protocol, is refused.
func TestFetchRefuses(t *testing.T) {
	web := newSite(t)
	web.files["/large.yaml"] = strings.Repeat("x", maxSize+1)
	s := Source{URL: web.URL + "/large.yaml", Digest: digest("x")}
	if _, _, failure := read(t, &Fetcher{Client: web.Client()}, s); !strings.Contains(failure, "larger than 256 KiB") {
		t.Error(failure)
	}
	next, err := http.NewRequest(http.MethodGet, "http://host/", nil)
	testkit.Check(t, err)
	if checkRedirect(next, nil) == nil {
		t.Error("a redirect to http is followed")
	}
	next.URL.Scheme = "https"
	if err := checkRedirect(next, make([]*http.Request, 5)); err != nil {
		t.Error(err)
	}
	if checkRedirect(next, make([]*http.Request, 6)) == nil {
		t.Error("six redirects are followed")
	}
}
