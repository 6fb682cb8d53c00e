// Package include reads files that a configuration includes from an https address.
//
// A rule that is fetched is only as good as what vouches for it. So every address
// comes with the digest of its content, or with the public key that signs it
// (minisign, Ed25519), and content that does not fit is never used. The last good
// copy is kept: it is used while the address cannot be reached, with a note that says
// so. Content with a digest is fetched once; signed content is fetched again when its
// copy is older than [MaxAge].
package include

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"

	"github.com/attache-mcp/attache/internal/fetch"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

const (
	// MaxAge is how old a signed copy may be before it is fetched again.
	MaxAge = time.Hour
	// timeout bounds a fetch.
	timeout = 5 * time.Second
	// MaxSize is how long a file may be, in bytes.
	MaxSize = 256 << 10
)

// A Source is an address and what vouches for its content: a digest or a key.
type Source struct {
	URL    string
	Digest string // "sha256:" and 64 hexadecimal digits
	Key    string // a public key of minisign, "RW..."
}

// Check returns what is wrong with s and what to do, nil if nothing is.
func (s Source) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is no https address: write it as https://host/team.yaml", s.URL)
	case u.User != nil:
		return errors.New("the address has a user name in it: take it out")
	case (s.Digest == "") == (s.Key == ""):
		return errors.New("an address needs digest or key, and not both: a rule from the network is used only if one of them vouches for it")
	case s.Digest != "":
		sum, ok := strings.CutPrefix(s.Digest, "sha256:")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size {
			return errors.New(`digest is not "sha256:" and 64 hexadecimal digits: write what sha256sum prints`)
		}
	default:
		if _, err := s.publicKey(); err != nil {
			return errors.New(`key is no public key of minisign: write the second line of its .pub file, which begins with "RW"`)
		}
	}
	return nil
}

func (s Source) publicKey() (key minisign.PublicKey, err error) {
	err = key.UnmarshalText([]byte(s.Key))
	return key, err
}

// A Fetcher reads sources. The zero value has no cache directory and so keeps no
// copies.
type Fetcher struct {
	// Dir is where copies are kept; it is made when the first one is.
	Dir string
	// Client, if not nil, has the transport of the requests.
	Client *http.Client
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Read returns the content of s. note, if not empty, is a warning for the user: the
// content is a copy because the address could not be read. An error says why there
// is no content that s vouches for, and what to do.
func (f *Fetcher) Read(ctx context.Context, s Source) (content []byte, note string, err error) {
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	kept, age := f.copy(s)
	if kept.content != nil && (s.Digest != "" || age < MaxAge) {
		return kept.content, "", nil
	}
	fresh, err := f.fetch(ctx, s)
	switch {
	case err != nil && kept.content == nil:
		return nil, "", fmt.Errorf("%s: %w", s.URL, err)
	case err != nil:
		return kept.content, fmt.Sprintf("%s: %v; the copy of %s is used", s.URL, err, f.now().Add(-age).UTC().Format(time.RFC3339)), nil
	case fresh.older(kept):
		return kept.content, fmt.Sprintf("%s: the signature is older than that of the copy kept here; the copy is used", s.URL), nil
	}
	if err := f.keep(s, fresh); err != nil {
		note = fmt.Sprintf("%s: no copy can be kept: %v", s.URL, err)
	}
	return fresh.content, note, nil
}

// A file is content and, where a key vouches for it, its signature.
type file struct {
	content   []byte
	signature []byte
}

// verify returns an error unless s vouches for the file.
func (f file) verify(s Source) error {
	if s.Digest != "" {
		sum := sha256.Sum256(f.content)
		if got := "sha256:" + hex.EncodeToString(sum[:]); !strings.EqualFold(got, s.Digest) {
			return fmt.Errorf("its digest is %s and not the one configured: compare the content, then change digest", got)
		}
		return nil
	}
	key, err := s.publicKey()
	if err != nil {
		return err
	}
	if !minisign.Verify(key, f.content, f.signature) {
		return errors.New("its signature is not by the key configured: ask whoever publishes it")
	}
	return nil
}

// older reports whether f was signed before g. The trusted comment that minisign
// writes has the time; without one in both, nothing is known.
func (f file) older(g file) bool {
	a, b := f.signed(), g.signed()
	return a > 0 && b > 0 && a < b
}

// signed returns when the file was signed, in seconds since 1970, 0 if that is not
// known.
func (f file) signed() (seconds int64) {
	var s minisign.Signature
	if len(f.signature) == 0 || s.UnmarshalText(f.signature) != nil {
		return 0
	}
	for _, word := range strings.Fields(s.TrustedComment) {
		if text, ok := strings.CutPrefix(word, "timestamp:"); ok {
			_, _ = fmt.Sscanf(text, "%d", &seconds)
		}
	}
	return seconds
}

// fetch reads s from the network and verifies it.
func (f *Fetcher) fetch(ctx context.Context, s Source) (got file, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if got.content, err = f.get(ctx, s.URL); err != nil {
		return file{}, err
	}
	if s.Key != "" {
		if got.signature, err = f.get(ctx, s.URL+".minisig"); err != nil {
			return file{}, fmt.Errorf("its signature (%s.minisig): %w", s.URL, err)
		}
	}
	return got, got.verify(s)
}

func (f *Fetcher) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "attache")
	body, err := fetch.Do(fetch.NewClient(f.Client, staySafe), request, MaxSize)
	if errors.Is(err, fetch.ErrTooLong) {
		return nil, fmt.Errorf("it is larger than %d KiB, as no configuration is", MaxSize>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be fetched: %w", err)
	}
	return body, nil
}

// staySafe lets a redirect lead to https alone.
func staySafe(next *http.Request, before []*http.Request) error {
	if next.URL.Scheme != "https" || len(before) > 5 {
		return errors.New("it redirects to another protocol, or too often")
	}
	return nil
}

func (f *Fetcher) now() time.Time {
	if f.Now != nil {
		return f.Now()
	}
	return time.Now()
}

// path returns where the copy of s is kept, without its ending.
func (f *Fetcher) path(s Source) string {
	sum := sha256.Sum256([]byte(s.URL))
	return filepath.Join(f.Dir, hex.EncodeToString(sum[:16]))
}

// copy returns the copy of s, if there is one that s vouches for, and its age.
func (f *Fetcher) copy(s Source) (file, time.Duration) {
	if f.Dir == "" {
		return file{}, 0
	}
	info, err := os.Stat(f.path(s) + ".yaml")
	if err != nil || !info.Mode().IsRegular() || info.Size() > MaxSize {
		return file{}, 0
	}
	var kept file
	if kept.content, err = os.ReadFile(f.path(s) + ".yaml"); err != nil {
		return file{}, 0
	}
	if s.Key != "" {
		if kept.signature, err = os.ReadFile(f.path(s) + ".minisig"); err != nil {
			return file{}, 0
		}
	}
	if kept.verify(s) != nil {
		return file{}, 0 // another digest or key is configured now, or it was changed
	}
	return kept, f.now().Sub(info.ModTime())
}

// keep writes a copy. The signature comes first: content without its signature is
// not used, so a crash between the two costs a fetch and no more.
func (f *Fetcher) keep(s Source, fresh file) error {
	if f.Dir == "" {
		return nil
	}
	if fresh.signature != nil {
		if err := textfile.Replace(f.path(s)+".minisig", fresh.signature); err != nil {
			return err
		}
	}
	return textfile.Replace(f.path(s)+".yaml", fresh.content)
}
