package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// The variables that identify the principal of the session. The first two hold a token and
// never reach the server. The others are set by the operator and need no proof.
const (
	TokenVariable  = setting.Prefix + "_TOKEN"
	JWTVariable    = "MCP_JWT"
	UserVariable   = "MCP_USER_ID"
	TenantVariable = "MCP_TENANT_ID"
)

// AcceptsTokens reports whether any tokens are accepted.
func (s *IdentitySettings) AcceptsTokens() bool { return s.JWT.Issuer != "" }

// Tokens returns the options for [identity.NewTokens].
func (s *IdentitySettings) Tokens() identity.TokenOptions {
	o := s.JWT
	o.Leeway = cmp.Or(o.Leeway, -1) // 0 would mean the default
	return o
}

// OperatorSettings hold the principal as the operator sets it.
type OperatorSettings struct {
	// Variables is the principal in MCP_USER_ID and MCP_TENANT_ID, nil if neither is set.
	Variables *sessionstate.Principal
	// SessionFile is the absolute path of the session file; empty for none.
	SessionFile string
	// File is the content of the session file when attache was started. FileErr is set if the
	// file could not be used.
	File    identity.SessionFile
	FileErr error
}

func (s *Settings) tokenOptions() []setting.Option {
	o := &s.Identity
	claim := func(field, help string, to *string) setting.Option {
		return setting.Option{Key: "identity.jwt.claims." + field, Help: help,
			Value: setting.Text(to, setting.NotBlank(`is empty: write the name of a claim, or "-" for none`))}
	}
	c := &o.JWT.Claims
	return []setting.Option{
		{Key: "identity.meta_token", Help: `accept a token in _meta["io.github.attache-mcp/token"]`, Value: setting.Bool(&o.MetaToken)},
		{Key: "identity.token_file", Flag: "token-file", Hint: "FILE",
			Help: "file that holds the session's token and may be renewed (or give the token itself in ATTACHE_TOKEN)", Value: setting.Path(&o.TokenFile, notToken)},
		{Key: "identity.jwt.issuer", Help: "the claim iss of tokens that are accepted", Value: setting.Text(&o.JWT.Issuer)},
		{Key: "identity.jwt.audience", Help: "the audience that the claim aud must contain; attache serve also accepts the URL of the server", Value: setting.Text(&o.JWT.Audience)},
		{Key: "identity.jwt.jwks", Help: "the issuer's public keys: a file or an https address", Value: keySet{&o.JWT.JWKS}},
		{Key: "identity.jwt.leeway", Help: "how far the clocks of the issuer and of this machine may be apart", Value: setting.Duration(&o.JWT.Leeway, 0)},
		claim("user", `the claim with the user; "-" for none`, &c.User),
		claim("tenant", "the claim with the tenant", &c.Tenant),
		claim("email", "the claim with the address", &c.Email),
		claim("roles", "the claim with the roles, a list or one text; dots lead into nested claims", &c.Roles),
		claim("permissions", "the claim with the permissions, a list or a text with blanks between them", &c.Permissions),
		claim("plan", "the claim with the tenant's plan; default: none", &c.Plan),
		claim("scope", "the claim with the policy scope; default: none", &c.Scope),
		claim("trust", `the claim with the level of trust; default: none; with one, the issuer can say "direct"`, &c.Trust),
	}
}

func defaultJWT() identity.TokenOptions {
	claims, _ := identity.Claims{}.Complete() // the default names are valid
	return identity.TokenOptions{Leeway: identity.DefaultLeeway, Claims: claims}
}

// notToken returns an error if s is a token and not the path of a file. The error does not contain s.
func notToken(s string) error {
	if strings.HasPrefix(s, "eyJ") && len(s) > 60 {
		return fmt.Errorf("is a token and not a file that holds one: give the token itself in %s", TokenVariable)
	}
	return nil
}

// A keySet reads where the public keys of an issuer are: a file or an address.
type keySet struct{ to *string }

func (v keySet) Set(s, base string) error {
	if !strings.Contains(s, "://") {
		return setting.Path(v.to).Set(s, base)
	}
	if _, err := identity.NewTokens(identity.TokenOptions{Issuer: "-", Audience: "-", JWKS: s}); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "identity.jwt.jwks "))
	}
	*v.to = s
	return nil
}

func (v keySet) String() string         { return *v.to }
func (v keySet) Shown() string          { return ShownAddress(*v.to) }
func (v keySet) Schema() map[string]any { return map[string]any{"type": "string"} }

// operatorVariables reads MCP_USER_ID and MCP_TENANT_ID.
func (l *loader) operatorVariables(s *Settings) {
	p := &sessionstate.Principal{Asserted: map[string]string{}}
	for _, v := range []struct {
		name, field string
		to          *string
	}{{UserVariable, "user", &p.User}, {TenantVariable, "tenant", &p.Tenant}} {
		text := l.Getenv(v.name)
		if text == "" {
			continue
		}
		if strings.TrimSpace(text) != text || strings.ContainsFunc(text, unicode.IsControl) {
			l.problems.Add(setting.Origin{Name: v.name}, "has space around it, a line break or a control character in it: write the plain name")
			continue
		}
		*v.to, p.Asserted[v.field] = text, v.name
	}
	if len(p.Asserted) > 0 {
		s.Operator.Variables = p
	}
}

// sessionFile reads the session file. Flags, variables and the configuration take precedence over
// it. A file that cannot be used identifies nobody and is not a mistake in the settings, because
// the session continues without it.
func (l *loader) sessionFile(s *Settings) {
	o := &s.Operator
	if o.SessionFile == "" {
		return
	}
	if o.File, o.FileErr = identity.ReadSessionFile(o.SessionFile); o.FileErr == nil {
		// If it names another user than the variables, it may be the file of another session, so
		// its workspace is ignored too.
		_, o.FileErr = o.With(o.File, nil)
	}
	if o.FileErr != nil {
		o.File = identity.SessionFile{}
		return
	}
	for _, f := range []struct {
		key, value string
		to         *string
	}{
		{"session.workspace", o.File.Workspace, &s.Session.Workspace},
		{"session.workspace_id", o.File.WorkspaceID, &s.Session.WorkspaceID},
		{"session.id", o.File.Session, &s.Session.ID},
		{"session.trust", o.File.Trust, &s.Session.Trust},
	} {
		if f.value != "" && s.Origin(f.key).Default() {
			*f.to, s.origins[f.key] = f.value, o.Origin()
		}
	}
}

// Origin returns the origin of values in the session file.
func (o OperatorSettings) Origin() setting.Origin {
	return setting.Origin{Name: "session file " + o.SessionFile}
}

// checkTokens refuses incomplete settings: a forgotten line must not mean that tokens of any
// issuer, or for any audience, are accepted.
func (l *loader) checkTokens(s *Settings) {
	options := s.tokenOptions()
	first := slices.IndexFunc(options, func(o setting.Option) bool {
		return strings.HasPrefix(o.Key, "identity.jwt.") && !s.Origin(o.Key).Default()
	})
	if first < 0 {
		return
	}
	if _, err := identity.NewTokens(s.Identity.Tokens()); err != nil {
		at := s.Origin(options[first].Key)
		key, _, _ := strings.Cut(err.Error(), " ")
		if l.problems.Concern(key) {
			return // its value was refused, which is reported
		}
		if !s.Origin(key).Default() {
			at = s.Origin(key)
		}
		l.problems.Add(at, "%v", err)
	}
}

// OperatorFacts returns the fields of the principal that the operator set, each as key, value and
// origin. It leaves out trust, which is session.trust.
func (s *Settings) OperatorFacts() [][3]string {
	var all [][3]string
	p, err := s.Operator.With(s.Operator.File, s.Operator.FileErr)
	if err != nil {
		all = append(all, [3]string{"principal", err.Error(), s.Operator.Origin().String()})
	}
	if p == nil {
		return all
	}
	for _, f := range factsOf(p) {
		if f.value != "" && f.field != "trust" {
			all = append(all, [3]string{"principal." + f.field, f.value, p.Asserted[f.field]})
		}
	}
	return all
}

// With returns the principal that the operator's variables and the session file f define together.
// If err is not nil, it returns the principal of the variables alone and err.
func (o OperatorSettings) With(f identity.SessionFile, err error) (*sessionstate.Principal, error) {
	if err != nil {
		return o.Variables, err
	}
	p, err := sessionstate.Overlay(o.Variables, o.principal(f))
	if err != nil {
		err = fmt.Errorf("%w: the session file names another than %s and %s: correct one of them", err, UserVariable, TenantVariable)
	}
	return p, err
}

// principal returns the principal of a session file, nil if it has neither a principal nor a level
// of trust.
func (o OperatorSettings) principal(f identity.SessionFile) *sessionstate.Principal {
	p := sessionstate.Principal{Trust: f.Trust, Asserted: map[string]string{}}
	switch {
	case f.Principal != nil:
		p = *f.Principal
		p.Asserted = map[string]string{}
	case f.Trust == "":
		return nil
	}
	for _, fact := range factsOf(&p) {
		if fact.value != "" {
			p.Asserted[fact.field] = o.Origin().String()
		}
	}
	return &p
}

// factsOf returns the fields of a principal as texts for people.
func factsOf(p *sessionstate.Principal) []struct{ field, value string } {
	return []struct{ field, value string }{
		{"user", p.User}, {"tenant", p.Tenant}, {"email", p.Email},
		{"roles", strings.Join(p.Roles, ", ")}, {"permissions", strings.Join(p.Permissions, ", ")},
		{"plan", p.Plan}, {"scope", p.Scope}, {"trust", p.Trust},
	}
}
