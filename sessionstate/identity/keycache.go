package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/internal/fetch"
	"github.com/attache-mcp/attache/internal/loopback"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// keyCache holds the key set of an issuer and reads it when it is needed.
type keyCache struct {
	name    string // for errors
	hint    string // what to do when it cannot be read
	read    func(context.Context) ([]byte, error)
	refresh time.Duration
	timeout time.Duration
	now     func() time.Time
	kept    func(error) // see [TokenOptions]; may be nil

	mu     sync.Mutex // guards what follows
	set    *keySet    // the last that was read
	readAt time.Time  // when the reading of set began
	trying chan struct{}
	tried  time.Time // when the last reading was over
	err    error     // of the last reading
	told   bool      // kept knows that set cannot be read again
}

// newKeyCache returns a cache for o.JWKS. It reads nothing.
func newKeyCache(o TokenOptions) (*keyCache, error) {
	c := &keyCache{name: o.JWKS, hint: "correct the file or identity.jwt.jwks", refresh: FileRefresh, timeout: o.Timeout, now: o.Now, kept: o.Kept}
	switch scheme, _, ok := strings.Cut(o.JWKS, "://"); {
	case o.JWKS == "":
		return nil, errors.New("identity.jwt.jwks is missing: write the file or https address of the issuer's key set")
	case ok && isScheme(scheme):
		u, err := parseKeySetURL(o.JWKS)
		if err != nil {
			return nil, err
		}
		c.hint = "see whether its server is up and identity.jwt.jwks is right"
		c.name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
		client := sync.OnceValue(func() *http.Client { return fetch.NewClient(o.Client, noRedirects) })
		c.read = func(ctx context.Context) ([]byte, error) { return fetchKeySet(ctx, client(), u) }
		c.refresh = Refresh
	default:
		c.read = func(context.Context) ([]byte, error) {
			data, _, err := textfile.Read(o.JWKS, keySetFile)
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				return nil, path.Err // the errors of the cache name the file
			}
			return data, err
		}
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	return c, nil
}

// isScheme keeps paths with :// in them, however odd, files.
func isScheme(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isKeyRune(r) && r != '+' && r != '.' })
}

// parseKeySetURL reads an address. Its errors do not repeat it.
func parseKeySetURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, errors.New("identity.jwt.jwks is no address: write it as https://host/path")
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())):
		return nil, errors.New("identity.jwt.jwks can be changed on its way: use https, or http to localhost")
	case u.User != nil:
		return nil, errors.New("identity.jwt.jwks has a user name in it: take it out, a key set is public")
	}
	u.Fragment = ""
	return u, nil
}

// noRedirects follows none, because only the configured address may give keys.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func fetchKeySet(ctx context.Context, client *http.Client, u *url.URL) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("it is no address that can be asked")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	data, err := fetch.Do(client, request, maxKeySetBytes)
	if status, ok := errors.AsType[fetch.StatusError](err); ok && status/100 == 3 {
		return nil, fmt.Errorf("%w, and redirects are not followed: write the address it leads to", err)
	}
	if errors.Is(err, fetch.ErrTooLong) {
		return nil, errors.New("it has more than 1 MiB")
	}
	return data, err
}

// get returns a key set that may be used. missed, if not nil, is the set in which
// a key was not found: then another is asked for, unless one was just now, and the
// error is that of asking.
func (c *keyCache) get(ctx context.Context, missed *keySet) (*keySet, error) {
	c.mu.Lock()
	now := c.now()
	if c.set != nil && c.set != missed && isRecent(now, c.readAt, c.refresh) {
		defer c.mu.Unlock()
		return c.set, nil
	}
	if !c.tried.IsZero() && isRecent(now, c.tried, RetryAfter) {
		defer c.mu.Unlock()
		return c.usableLocked(now, missed)
	}
	if c.trying == nil {
		c.trying = make(chan struct{})
		// It continues when the first caller gives up: others may wait for it.
		go c.try(context.WithoutCancel(ctx), c.trying)
	}
	trying := c.trying
	c.mu.Unlock()

	// A file on a lost network disk does not know of time limits.
	wait, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case <-trying:
	case <-wait.Done():
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usableLocked(c.now(), missed)
}

// isRecent reports whether at is less than d before now. If the clock was set back, a time in
// the future is not recent.
func isRecent(now, at time.Time, d time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < d
}

// usableLocked returns the last key set if it may serve. Whoever missed a key in
// that very set is told why there is no newer one.
func (c *keyCache) usableLocked(now time.Time, missed *keySet) (*keySet, error) {
	failure := c.err
	if c.trying != nil {
		failure = fmt.Errorf("no answer within %v", c.timeout)
	}
	kept := c.set != nil && isRecent(now, c.readAt, c.refresh+KeepKeys)
	switch {
	case kept && (failure == nil || c.set != missed):
		return c.set, nil
	case failure == nil:
		failure = errors.New("it was read too long ago")
	}
	return nil, fmt.Errorf("%w: %s: %w: %s", ErrKeySet, c.name, failure, c.hint)
}

// try reads the key set once. It runs in a goroutine of its own, for at most the timeout if the
// source heeds one.
func (c *keyCache) try(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	began := c.now()
	data, err := c.read(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		err = fmt.Errorf("no answer within %v", c.timeout)
	}
	var set *keySet
	if err == nil {
		set, err = parseKeySet(data)
	}
	if err != nil {
		c.tell(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.set, c.readAt, c.told = set, began, false
	}
	c.err, c.tried, c.trying = err, c.now(), nil
	close(done)
}

// tell reports to kept a reading that failed with err, if the last set now serves beyond its
// time.
func (c *keyCache) tell(err error) {
	c.mu.Lock()
	now := c.now()
	due := c.kept != nil && !c.told && c.set != nil &&
		!isRecent(now, c.readAt, c.refresh) && isRecent(now, c.readAt, c.refresh+KeepKeys)
	c.told = c.told || due
	c.mu.Unlock()
	if due {
		c.kept(fmt.Errorf("%s: %w: %s", c.name, err, c.hint))
	}
}
