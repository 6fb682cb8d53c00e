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

const (
	// Refresh is how long a key set from a URL is used before it is read again. A key that the
	// issuer withdraws stops working within this time.
	Refresh = 15 * time.Minute
	// FileRefresh is how long a key set from a file is used before it is read again.
	FileRefresh = time.Minute
	// KeepKeys is how long, beyond the refresh time, the last key set is used if it cannot be
	// read again. After that no token is accepted.
	KeepKeys = time.Hour
	// RetryAfter is the minimum time between two reads of a key set, even if they fail or
	// tokens name unknown keys. So tokens with invented keys cause few requests.
	RetryAfter = 10 * time.Second
)

// keyCache caches the key set of an issuer and reads it on demand.
type keyCache struct {
	name    string // for errors
	hint    string // the remedy if the key set cannot be read
	read    func(context.Context) ([]byte, error)
	refresh time.Duration
	timeout time.Duration
	now     func() time.Time
	onStale func(error) // TokenOptions.Kept; may be nil

	mu       sync.Mutex // guards the fields below
	set      *keySet
	readAt   time.Time     // start of the read that returned set; zero, and so never recent, if set is nil
	reading  chan struct{} // closed at the end of the read in progress; nil if there is none
	lastRead time.Time     // end of the last read, successful or not
	err      error         // of the last read
	reported bool          // onStale was called for set
}

// newKeyCache returns a cache for the key set at location, a path or an address. It reads nothing.
func newKeyCache(location string, base *http.Client) (*keyCache, error) {
	c := &keyCache{name: location, hint: "correct the file or identity.jwt.jwks", refresh: FileRefresh}
	switch {
	case location == "":
		return nil, errors.New("identity.jwt.jwks is missing: write the file or https address of the issuer's key set")
	case strings.Contains(location, "://"): // as in the configuration
		u, err := parseKeySetURL(location)
		if err != nil {
			return nil, err
		}
		c.hint = "see whether its server is up and identity.jwt.jwks is right"
		c.name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
		client := sync.OnceValue(func() *http.Client { return fetch.NewClient(base, noRedirects) })
		c.read = func(ctx context.Context) ([]byte, error) { return fetchKeySet(ctx, client(), u) }
		c.refresh = Refresh
	default:
		c.read = func(context.Context) ([]byte, error) {
			data, _, err := textfile.Read(location, keySetFile)
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				return nil, path.Err // the errors of the cache name the file
			}
			return data, err
		}
	}
	return c, nil
}

// parseKeySetURL parses the address of a key set. Its errors do not quote the address.
func parseKeySetURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, errors.New("identity.jwt.jwks is not an address: write it as https://host/path")
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())):
		return nil, errors.New("identity.jwt.jwks would be fetched without TLS, so others could change it: use https, or http to localhost")
	case u.User != nil:
		return nil, errors.New("identity.jwt.jwks has a user name in it: take it out, a key set is public")
	}
	return u, nil
}

// noRedirects refuses all redirects, because only the configured address may provide keys.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func fetchKeySet(ctx context.Context, client *http.Client, u *url.URL) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("it is not a valid address")
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

// get returns a usable key set. missed, if not nil, is a set that lacks a key: get then reads
// the key set again, unless it was read within RetryAfter, and returns an error of that read.
func (c *keyCache) get(ctx context.Context, missed *keySet) (*keySet, error) {
	c.mu.Lock()
	now := c.now()
	if c.set != missed && isRecent(now, c.readAt, c.refresh) {
		defer c.mu.Unlock()
		return c.set, nil
	}
	if isRecent(now, c.lastRead, RetryAfter) {
		defer c.mu.Unlock()
		return c.usableLocked(now, missed)
	}
	if c.reading == nil {
		c.reading = make(chan struct{})
		// The read continues if the first caller gives up, because others may wait for it.
		go c.update(context.WithoutCancel(ctx), c.reading)
	}
	reading := c.reading
	c.mu.Unlock()

	// Reading a file from a lost network disk ignores the timeout.
	wait, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case <-reading:
	case <-wait.Done():
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usableLocked(c.now(), missed)
}

// isRecent reports whether at is less than d before now. A time in the future, after the clock
// was set back, is not recent.
func isRecent(now, at time.Time, d time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < d
}

// usableLocked returns the last key set if it may still be used. For a caller that missed a key
// in this set it returns the reason why there is no newer one.
func (c *keyCache) usableLocked(now time.Time, missed *keySet) (*keySet, error) {
	failure := c.err
	if c.reading != nil {
		failure = fmt.Errorf("no answer within %v", c.timeout)
	}
	usable := isRecent(now, c.readAt, c.refresh+KeepKeys)
	switch {
	case usable && (failure == nil || c.set != missed):
		return c.set, nil
	case failure == nil:
		failure = errors.New("it was read too long ago")
	}
	return nil, fmt.Errorf("%w: %s: %w: %s", ErrKeySet, c.name, failure, c.hint)
}

// update reads the key set once and then closes done. It runs in its own goroutine, for at most
// the timeout if the source respects one.
func (c *keyCache) update(ctx context.Context, done chan struct{}) {
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
		c.reportStale(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.set, c.readAt, c.reported = set, began, false
	}
	c.err, c.lastRead, c.reading = err, c.now(), nil
	close(done)
}

// reportStale calls onStale with the error of a read if the last set is now used beyond its
// refresh time.
func (c *keyCache) reportStale(err error) {
	c.mu.Lock()
	now := c.now()
	due := c.onStale != nil && !c.reported && !isRecent(now, c.readAt, c.refresh) && isRecent(now, c.readAt, c.refresh+KeepKeys)
	c.reported = c.reported || due
	c.mu.Unlock()
	if due {
		c.onStale(fmt.Errorf("%s: %w: %s", c.name, err, c.hint))
	}
}
