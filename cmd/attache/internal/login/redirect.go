package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A redirect receives the answer of the authorization server from the browser, on a port of this
// machine that is open for one login.
type redirect struct {
	url     *url.URL
	state   string
	answers chan url.Values
	server  *http.Server
}

// listen opens the port. Without an address the system chooses a free port, so that several logins at
// the same time work. Authorization servers must accept any port of the loopback address (RFC 8252, section 7.3).
func listen(address, state string) (*redirect, error) {
	u, err := url.Parse(cmp.Or(address, "http://127.0.0.1:0/callback"))
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

// close closes the port after the browser has received its page.
func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.server.Shutdown(ctx)
	_ = r.server.Close()
}

// ServeHTTP receives the answer. It refuses a request without the state of this login: any page in the
// browser can send one to this port.
func (r *redirect) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if q.Method != http.MethodGet || q.URL.Path != cmp.Or(r.url.Path, "/") || !r.accept(q.URL.Query()) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "This is not the answer that attache waits for.\n")
		return
	}
	io.WriteString(w, "attache has received the answer. You can close this page: the terminal shows whether the login succeeded.\n")
}

// accept reports whether an answer is one of this login. Only the first one is used.
func (r *redirect) accept(answer url.Values) bool {
	if answer.Get("state") != r.state {
		return false
	}
	select {
	case r.answers <- answer:
	default:
	}
	return true
}

// paste reads the answer from an address that a person pastes, if the browser is on another machine
// and cannot reach the port.
func (r *redirect) paste(line string) error {
	u, err := url.Parse(line)
	if err != nil || !r.accept(u.Query()) {
		return errors.New("this is not the address that the browser shows after the login")
	}
	return nil
}

// wait returns the answer, from the browser or pasted by the person.
func (r *redirect) wait(ctx context.Context, ui UI) (url.Values, error) {
	lines := ui.Lines
	for {
		select {
		case answer := <-r.answers:
			return answer, nil
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			if err := r.paste(strings.TrimSpace(line)); err != nil {
				ui.Say(err.Error())
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
