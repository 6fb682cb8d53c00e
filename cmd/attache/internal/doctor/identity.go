package doctor

import (
	"context"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// identity reports the principal of a session, and its trust level.
func (d *Doctor) identity(ctx context.Context) {
	d.check = "identity"
	who, err := assembly.NewAuthenticator(d.Process, d.Settings)
	if err != nil {
		d.problem("correct the setting it names", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	p, err := who.Identify(ctx, capture.Credential{})
	if err != nil {
		d.refused(who, err)
	}
	d.principal, d.unidentified = p, err
	switch {
	case p != nil:
		d.ok("sessions act for %s", principalText(p))
	case err != nil:
	case len(who.Accept) > 0:
		d.ok("nobody is identified until a client sends a credential in _meta")
	default:
		d.note("nothing, if no rule asks who calls; or give a key in ATTACHE_API_KEY", "nobody is identified")
	}
	trust, _ := d.identified(assembly.BaseContext(d.Process, d.Settings)).Lookup("session.trust")
	d.ok("the trust is %s %s", trust.Value, term.Provenance(trust.Source.String(), trust.From))
}

func (d *Doctor) identified(ctx *sessionstate.Context) *sessionstate.Context {
	return ctx.With(func(ctx *sessionstate.Context) { ctx.Principal, ctx.Unidentified = d.principal, d.unidentified })
}

// refused reports why nobody is identified: because of the session file, which is read first, or because of
// the credential.
func (d *Doctor) refused(who *assembly.Authenticator, err error) {
	if _, fileErr := who.Asserted(); fileErr != nil || who.Own.Text == nil {
		d.problem("correct the session file, or do not name it", "nobody is identified: %v", err)
		return
	}
	do := `give a valid key; "attache key list" shows them`
	if text, err := who.Own.Text(); err != nil || identity.LooksLikeToken(text) {
		do = "give a valid token, or correct identity.jwt"
	}
	d.problem(do, "the credential from %s identifies nobody: %v", who.Own.From, err)
}

// tokenKeys checks that the issuer's key set can be read. A file is checked with the configuration.
func (d *Doctor) tokenKeys(ctx context.Context) {
	if !strings.Contains(d.Settings.Identity.JWT.JWKS, "://") {
		return
	}
	tokens, err := identity.NewTokens(d.Settings.Identity.Tokens())
	if err != nil {
		return // reported with the configuration
	}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	if err := tokens.CheckKeys(ctx); err != nil {
		d.problem("correct it; until then no token is accepted", "%v", err)
		return
	}
	d.ok("the key set for tokens of %s can be read", d.Settings.Identity.JWT.Issuer)
}
