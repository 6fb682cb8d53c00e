package login_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/login/logintest"
)

// replaced returns a logintest.Config.Edit that replaces a text in the responses of a path.
func replaced(path, old, text string) func(string, *httptest.ResponseRecorder) {
	return func(at string, response *httptest.ResponseRecorder) {
		if at == path {
			body := strings.Replace(response.Body.String(), old, text, 1)
			response.Body.Reset()
			response.Body.WriteString(body)
		}
	}
}

// A registration response may have any members that attache does not need. Ory Hydra sends jwks as an
// object (RFC 7591, 2), others times with a fraction.
func TestRegistrationResponse(t *testing.T) {
	for _, member := range []string{`"jwks":{},`, `"jwks":{"keys":[]},`, `"client_id_issued_at":1795780346.5,`, `"scope":["a"],"contacts":"",`, `"client_secret":null,`} {
		s, o := start(t, logintest.Config{Edit: replaced("/register", "{", "{"+member)})
		logIn(t, o)
		requireServed(t, s, credentials(o), "")
	}
}
