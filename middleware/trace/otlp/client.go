package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Options say where to send to, and how. Endpoint must be given.
type Options struct {
	// Endpoint is the whole URL of one signal, such as
	// http://localhost:4318/v1/traces.
	Endpoint string
	// Headers are sent with each request. They are often secret.
	Headers map[string]string
	// Gzip compresses what is sent.
	Gzip bool
	// Timeout is how long one attempt may take; 0 stands for 10 s.
	Timeout time.Duration
	// TLS has the certificates to use; nil stands for the system's.
	TLS *tls.Config
	// Context ends whatever is under way when it is done; nil for never.
	Context context.Context
	// Ending is closed when the program is about to end: from then on nothing is
	// tried a second time. nil for never.
	Ending <-chan struct{}
	// Failed is called with the reason why something could not be sent and was dropped; nil for
	// nobody. The error has no header in it, and of the URL only the host.
	Failed func(error)
}

const (
	// patience is how long a retry waits at first, and how often it waits twice as
	// long as before.
	patience = time.Second
	retries  = 2
	// maxAnswer is how much of an answer is read, so that the connection can be used
	// again.
	maxAnswer = 64 << 10
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
		return nil, fmt.Errorf("%q is no endpoint: write a URL such as http://localhost:4318", o.Endpoint)
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	return &client{o: o, host: u.Host, pause: patience, http: http.Client{
		Transport: transport,
		Timeout:   o.Timeout,
		// A redirect would take the headers somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// send delivers one message, or reports to Failed that it did not. It tries again
// where OTLP says that this may help.
func (c *client) send(ctx context.Context, message []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.o.Context, func() { cancel(errors.New("the session is over")) })()
	body, err := c.encode(message)
	for n, pause := 0, c.pause; err == nil; n, pause = n+1, 2*pause {
		var again bool
		if again, err = c.post(ctx, body); err == nil {
			return
		}
		if !again || n == retries || !c.sleep(ctx, pause) {
			break
		}
		err = nil
	}
	c.o.Failed(fmt.Errorf("%s: %w", c.host, err))
}

// sleep reports whether it could sleep until its end.
func (c *client) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.o.Ending:
		return false
	case <-t.C:
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

// post makes one attempt. again says that another may succeed.
func (c *client) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the request could not be made")
	}
	for name, value := range c.o.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.o.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the whole URL
		}
		return true, err
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true // the codes OTLP lists under "Retryable Response Codes"
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return again, fmt.Errorf("the collector answered %s", answer.Status)
	}
	return false, nil
}
