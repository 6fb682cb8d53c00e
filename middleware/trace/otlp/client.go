package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Options configure an exporter. Endpoint is required.
type Options struct {
	// Endpoint is the whole URL of one signal, such as
	// http://localhost:4318/v1/traces.
	Endpoint string
	// Headers are sent with each request. They are often secret.
	Headers map[string]string
	// Gzip compresses the requests.
	Gzip bool
	// Delta exports counters and histograms since the last export, not since the start.
	Delta bool
	// Timeout bounds one attempt; 0 means 10 s.
	Timeout time.Duration
	// TLS has the certificates to use; nil means the system's.
	TLS *tls.Config
	// Context, if not nil, stops all requests when it is done.
	Context context.Context
	// Ending is closed when the program is about to end. Then there are no more retries.
	// nil means never.
	Ending <-chan struct{}
	// Failed, if not nil, is called with the reason when a message could not be sent and was
	// dropped. The error contains no header, and only the host of the URL.
	Failed func(error)
}

const (
	// firstPause is the pause before the first of retries. Each further pause is twice as long.
	firstPause = time.Second
	retries    = 2
	// maxAnswer is how much of an answer is read, so that the connection can be reused.
	maxAnswer = 64 << 10
	// maxReason is how much of a collector's reason is shown.
	maxReason = 256

	protobuf = "application/x-protobuf"
)

// A client sends the messages of one signal.
type client struct {
	o     Options
	http  http.Client
	host  string
	pause time.Duration // before the first retry
}

func newClient(o Options) (*client, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if strings.ContainsAny(o.Endpoint, "@?") { // a password may be in it
			return nil, errors.New("the endpoint is not valid: write a URL such as http://localhost:4318")
		}
		return nil, fmt.Errorf("%q is not an endpoint: write a URL such as http://localhost:4318", o.Endpoint)
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	o.Context = cmp.Or(o.Context, context.Background())
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	return &client{o: o, host: u.Host, pause: firstPause, http: http.Client{
		Transport: transport,
		Timeout:   o.Timeout,
		// A redirect would send the headers to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Shutdown is that of the exporters.
func (c *client) Shutdown(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// send sends one message, and calls Failed if it cannot. It retries after errors that OTLP
// calls retryable.
func (c *client) send(ctx context.Context, message []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.o.Context, func() { cancel(errors.New("the session is over")) })()
	body, err := c.encode(message)
	for n, pause := 0, c.pause; err == nil; n, pause = n+1, 2*pause {
		var again bool
		var wait time.Duration
		if again, wait, err = c.post(ctx, body); err == nil {
			return
		}
		if !again || n == retries || !c.sleep(ctx, max(pause, wait)) {
			break
		}
		err = nil
	}
	c.o.Failed(fmt.Errorf("%s: %w", c.host, err))
}

// sleep waits for d. It returns false if the program is ending.
func (c *client) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.o.Ending:
		return false
	case <-time.After(d):
		return true
	}
}

func (c *client) encode(message []byte) ([]byte, error) {
	if !c.o.Gzip {
		return message, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(message)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// post makes one attempt. again reports whether another attempt may succeed, after wait.
func (c *client) post(ctx context.Context, body []byte) (again bool, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the request could not be created")
	}
	for name, value := range c.o.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", protobuf)
	if c.o.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the whole URL
		}
		return true, 0, err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true // the "Retryable Response Codes" of OTLP
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return again, retryAfter(answer.Header), fmt.Errorf("the collector answered %s", answer.Status)
	}
	if answer.Header.Get("Content-Type") == protobuf {
		err = rejected(text)
	}
	return false, 0, err // what was rejected must not be sent again
}

// retryAfter returns how long a collector wants to be left alone, 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// rejected returns an error if an answer, an Export…ServiceResponse, says that the collector has
// rejected some spans or data points.
func rejected(answer []byte) error {
	partial, _ := field(answer, 1)
	reason, _ := field(partial, 2)
	_, n := field(partial, 1)
	if n == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans or data points: %q", n, reason[:min(len(reason), maxReason)])
}
