package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A registration holds the members of a registration response that attache uses (RFC 7591, 3.2).
type registration struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Method       string `json:"token_endpoint_auth_method"`
	Error        string `json:"error"`
	Description  string `json:"error_description"`
}

// register registers a client. It does not use [oauthex.RegisterClient], which refuses a response
// because of members that attache does not need: it requires that jwks is a string, but RFC 7591
// defines an object, and Ory Hydra sends one.
func (a *authority) register(ctx context.Context, c *http.Client, m *oauthex.ClientRegistrationMetadata) (*registration, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	resp, err := c.Do(r)
	if err != nil {
		return nil, registrationError(err, a)
	}
	defer resp.Body.Close()
	reply := &registration{}
	// At a place that nobody has named, an error with another status than 400, which RFC 7591 (3.2.2) demands,
	// only shows that the server has no login.
	err = json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(reply)
	switch {
	case err == nil && reply.Error != "" && (resp.StatusCode == http.StatusBadRequest || resp.StatusCode > 400 && !a.assumed):
		return nil, registrationError(&refusedError{shown(reply.Error), shown(reply.Description)}, a)
	case err != nil || resp.StatusCode < 200 || resp.StatusCode > 299 || reply.ClientID == "":
		return nil, registrationError(errors.New(resp.Status), a)
	}
	return reply, nil
}

// registrationError returns an error for a registration that failed. It contains no other part of the
// response, which could contain the client's secret. If the server names no authorization server, and
// there is none at the default place, the server has no login.
func registrationError(err error, a *authority) error {
	var refused *refusedError
	var network *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("attache cannot register: %w; you can register it by hand, and set server.oauth.client_id and server.oauth.redirect", refused)
	case errors.As(err, &network):
		return fmt.Errorf("attache cannot register: %w", network.Err)
	case a.assumed:
		return errors.New("the server has no login: it wants a credential and names no authorization server" + a.message + ". If you have a key or a token for it, name the variable that holds it with --bearer-env, or set server.headers")
	}
	return errors.New("attache cannot register: the authorization server's answer does not follow the standard; register attache by hand, and set server.oauth.client_id")
}

// registeredMethod returns the token endpoint auth method to register with. It prefers "none",
// because attache cannot keep a secret from the user.
func registeredMethod(a *authority) string {
	offered := a.TokenEndpointAuthMethodsSupported
	for _, method := range []string{"none", "client_secret_post", "client_secret_basic"} {
		if len(offered) == 0 || slices.Contains(offered, method) {
			return method
		}
	}
	return "" // the server then uses client_secret_basic (RFC 7591, section 2)
}

// style returns how to send the secret of the registered client. Without a secret only its id is sent, as a
// parameter.
func (r *registration) style() oauth2.AuthStyle {
	if r.ClientSecret != "" && (r.Method == "client_secret_basic" || r.Method == "") {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}
