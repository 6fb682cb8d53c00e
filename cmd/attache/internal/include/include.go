// Package include reads files that a configuration includes from an https address.
//
// Rules from the network must be authenticated. So every address is configured with
// the digest of its content, or with the public key that signs it (minisign,
// Ed25519), and other content is never used. The last valid copy is stored. It is
// used while the address cannot be reached, with a note for the user. Content with a
// digest is fetched once; signed content is fetched again when its copy is older than
// an hour.
package include

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"

	"github.com/attache-mcp/attache/internal/fetch"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

const (
	// maxAge is how old a signed copy may be before it is fetched again.
	maxAge = time.Hour
	// timeout bounds a fetch.
	timeout = 5 * time.Second
	// maxSize is the maximum size of a file, in bytes.
	maxSize = 256 << 10
)

// A Source is an address, and the digest or the key that authenticates its content.
type Source struct {
	URL    string
	Digest string // "sha256:" and 64 hexadecimal digits
	Key    string // a public key of minisign, "RW..."
}

// Shown returns the address for messages. It hides the query, which may contain a token.
func (s Source) Shown() string {
	if address, _, found := strings.Cut(s.URL, "?"); found {
		return address + "?[hidden]"
	}
	return s.URL
}

// Check returns an error if s is not valid.
func (s Source) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is not an https address: write it as https://host/team.yaml", s.Shown())
	case u.User != nil:
		return errors.New("the address has a user name in it: take it out")
	case (s.Digest == "") == (s.Key == ""):
		return errors.New("an address needs digest or key, and not both: attache uses only content that one of them confirms")
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

// A Fetcher reads sources. The zero value has no cache directory and stores no copies.
type Fetcher struct {
	// Dir is the directory for copies. It is created for the first copy.
	Dir string
	// Client, if not nil, has the transport of the requests.
	Client *http.Client
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Read returns the content of s. note, if not empty, is a warning for the user, for example that
// the content is a copy because the address could not be read. Read returns an error if there is no
// valid content.
func (f *Fetcher) Read(ctx context.Context, s Source) (content []byte, note string, err error) {
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	stored, age := f.copy(s)
	if stored.content != nil && (s.Digest != "" || age.Abs() < maxAge) {
		return stored.content, "", nil
	}
	fresh, err := f.fetch(ctx, s)
	switch {
	case err != nil && stored.content == nil:
		return nil, "", fmt.Errorf("%s: %w", s.Shown(), err)
	case err != nil:
		return stored.content, fmt.Sprintf("%s: %v; the copy of %s is used", s.Shown(), err, f.now().Add(-age).UTC().Format(time.RFC3339)), nil
	case fresh.older(stored):
		return stored.content, fmt.Sprintf("%s: the signature is older than that of the copy kept here; the copy is used", s.Shown()), nil
	}
	if err := f.store(s, fresh); err != nil {
		note = fmt.Sprintf("%s: no copy can be kept: %v", s.Shown(), err)
	}
	return fresh.content, note, nil
}

// A file is content and, for a source with a key, its signature.
type file struct {
	content   []byte
	signature []byte
}

// verify returns an error if the file does not have the digest, or a signature by the key, of s.
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

// older reports whether f was signed before g. It returns false if one of the two times is not
// known.
func (f file) older(g file) bool {
	a, b := f.signed(), g.signed()
	return a > 0 && b > 0 && a < b
}

// signed returns when the file was signed, in seconds since 1970, or 0 if that is not known.
// minisign writes the time into the trusted comment.
func (f file) signed() (seconds int64) {
	var s minisign.Signature
	if len(f.signature) == 0 || s.UnmarshalText(f.signature) != nil {
		return 0
	}
	for word := range strings.FieldsSeq(s.TrustedComment) {
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
			return file{}, fmt.Errorf("its signature (.minisig): %w", err)
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
	body, err := fetch.Do(fetch.NewClient(f.Client, checkRedirect), request, maxSize)
	if errors.Is(err, fetch.ErrTooLong) {
		return nil, fmt.Errorf("it is larger than %d KiB, which no configuration needs", maxSize>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be fetched: %w: see whether its server is up and the URL is right", err)
	}
	return body, nil
}

func checkRedirect(next *http.Request, before []*http.Request) error {
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

// path returns the path of the copy of s, without the file name extension.
func (f *Fetcher) path(s Source) string {
	sum := sha256.Sum256([]byte(s.URL))
	return filepath.Join(f.Dir, hex.EncodeToString(sum[:16]))
}

// copy returns the stored copy of s and its age, which is negative if the clock was ahead when the copy was
// written. It returns no content if there is no valid copy.
func (f *Fetcher) copy(s Source) (file, time.Duration) {
	if f.Dir == "" {
		return file{}, 0
	}
	content, info, err := textfile.Read(f.path(s)+".yaml", textfile.Rules{Max: maxSize})
	if err != nil {
		return file{}, 0
	}
	stored := file{content: content}
	if s.Key != "" {
		stored.signature, _, _ = textfile.Read(f.path(s)+".minisig", textfile.Rules{Max: maxSize})
	}
	if stored.verify(s) != nil {
		return file{}, 0 // another digest or key is configured now, or the copy was changed
	}
	return stored, f.now().Sub(info.ModTime())
}

// store writes a copy. It writes the signature first: content without its signature is not used, so
// a crash between the two only costs a fetch.
func (f *Fetcher) store(s Source, fresh file) error {
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
