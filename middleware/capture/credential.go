package capture

// The _meta keys under which a host may send a credential, if the operator allows it.
const (
	CredentialKey = "io.github.attache-mcp/apiKey" // an API key
	TokenKey      = "io.github.attache-mcp/token"  // a token (JWT)
)

// CredentialKeys returns the keys whose members are removed from frames. A frame that may contain
// one and cannot be edited must not reach a server.
func CredentialKeys() []string { return []string{CredentialKey, TokenKey} }

// A Credential is a secret that a client sent to identify itself.
type Credential struct {
	// Key is the key of _meta that held it, [CredentialKey] or [TokenKey].
	Key string
	// Text is the credential itself; "" if the client sent none and the operator's applies.
	Text string
}
