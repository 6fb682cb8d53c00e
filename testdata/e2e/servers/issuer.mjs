// An authorization server (oidc-provider) in which the user ada logs in and approves everything:
//
//	node issuer.mjs HOST:PORT
//
// Access tokens expire after a second, and each renewal replaces the refresh token: an old one
// that is used again ends the login.
import Provider from 'oidc-provider'

const address = process.argv[2]
const provider = new Provider(`http://${address}`, {
  clients: [{ client_id: 'robot', client_secret: 'secret-of-robot', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }],
  features: {
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({ scope: 'use', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 1 })
    }
  },
  scopes: ['openid', 'offline_access', 'use'],
  interactions: { url: (_, interaction) => `/approve/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) })
})

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/approve/')) return next()
  const { prompt, params, session } = await provider.interactionDetails(ctx.req, ctx.res)
  let result = { login: { accountId: 'ada' } }
  if (prompt.name === 'consent') {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(' '))
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
      grant.addResourceScope(resource, scopes.join(' '))
    }
    result = { consent: { grantId: await grant.save() } }
  }
  ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission: true }))
})

const [host, port] = address.split(':')
provider.listen(Number(port), host)
