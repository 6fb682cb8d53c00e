package trace

import "go.opentelemetry.io/otel/attribute"

// Scope is the instrumentation scope of attache's spans and metrics.
const Scope = "github.com/attache-mcp/attache"

// SchemaURL is the version of the GenAI and MCP semantic conventions that the names in
// this file follow.
//
// https://github.com/open-telemetry/semantic-conventions-genai
const SchemaURL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

// The attributes of the conventions, followed by those of attache.
const (
	methodKey     = attribute.Key("mcp.method.name")
	protocolKey   = attribute.Key("mcp.protocol.version")
	sessionKey    = attribute.Key("mcp.session.id")
	requestIDKey  = attribute.Key("jsonrpc.request.id")
	operationKey  = attribute.Key("gen_ai.operation.name")
	toolKey       = attribute.Key("gen_ai.tool.name")
	promptKey     = attribute.Key("gen_ai.prompt.name")
	errorTypeKey  = attribute.Key("error.type")
	statusCodeKey = attribute.Key("rpc.response.status_code")
	transportKey  = attribute.Key("network.transport")

	serverKey   = attribute.Key("attache.server")
	decisionKey = attribute.Key("attache.decision")
	rulesKey    = attribute.Key("attache.rules")
	editsKey    = attribute.Key("attache.edits")
	layerKey    = attribute.Key("attache.layer")
	dryRunKey   = attribute.Key("attache.dry_run")
	ruleKey     = attribute.Key("attache.rule")
)

// Values of gen_ai.operation.name and error.type.
const (
	executeTool  = "execute_tool"
	toolError    = "tool_error" // a result with isError, in the conventions
	errCancelled = "cancelled"
	errNoReply   = "no_reply" // the session ended first
)

// The bounds of a span.
const (
	maxAttribute   = 256     // bytes of a name or id from a peer
	maxHidden      = 4 << 10 // bytes of it that are searched for secrets; more, so that no secret is cut
	maxRulesOfCall = 32      // names of rules
)

// durationBounds returns the buckets of the MCP conventions, in seconds.
func durationBounds() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

const layerName = "trace"
