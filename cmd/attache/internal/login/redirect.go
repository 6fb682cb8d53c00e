package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A redirect is where the browser brings the answer of the authorization server: a port of
// this machine that is open for one login.
type redirect struct {
	url     *url.URL
	state   string
	answers chan url.Values
	server  *http.Server
}

// listen opens the port. Without an address the system chooses a free one, so that logins
// at the same time do not meet.
func listen(address, state string) (*redirect, error) {
	if address == "" {
		address = "http://127.0.0.1:0/callback"
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, u.Port()))
	if err != nil {
		return nil, fmt.Errorf("the browser's answer cannot be received: %w: another login may be waiting there; end it, or change server.oauth.redirect", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	u.Host = net.JoinHostPort(u.Hostname(), port)
	r := &redirect{url: u, state: state, answers: make(chan url.Values, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go r.server.Serve(l)
	return r, nil
}

// close closes the port when the browser has its page.
func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.server.Shutdown(ctx)
	_ = r.server.Close()
}

// ServeHTTP takes the answer. A request without the state of this login is none of its
// answers.
func (r *redirect) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if q.Method != http.MethodGet || q.URL.Path != r.url.Path || !r.take(q.URL.Query()) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "This is not the answer that attache waits for.\n")
		return
	}
	io.WriteString(w, "attache has the answer: you can close this page. The terminal says how it went on.\n")
}

// take takes an answer, if it is one of this login. The first one counts.
func (r *redirect) take(answer url.Values) bool {
	if answer.Get("state") != r.state {
		return false
	}
	select {
	case r.answers <- answer:
	default:
	}
	return true
}

// paste takes the answer from lines that a person pastes, where the browser is on another
// machine and its page cannot be shown.
func (r *redirect) paste(line string) error {
	u, err := url.Parse(line)
	if err != nil || !r.take(u.Query()) {
		return errors.New("that is not the address that the browser ended at")
	}
	return nil
}

// wait returns the answer.
func (r *redirect) wait(ctx context.Context) (url.Values, error) {
	select {
	case answer := <-r.answers:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
