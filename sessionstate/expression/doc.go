// Package expression evaluates the expressions of attache's rules: the values
// and conditions an operator writes over what is known of a session and a call.
//
//	when:  session.trust == "sandboxed" && !("admin" in principal.roles)
//	when:  has(arguments.path) && !arguments.path.startsWith(session.workspace.path)
//	when:  tool.annotations.destructiveHint
//	value: principal.tenant
//	set:   '["agent", session.trust]'
//
// They are CEL (https://cel.dev), with the standard functions and macros, and
// read these names:
//
//	session.id, session.conversation, session.trust       strings
//	session.workspace.path, session.workspace.id          strings
//	principal.user, tenant, email, plan, scope            strings
//	principal.roles, principal.permissions                lists of strings
//	tool.name                                             a string
//	tool.annotations.title                                a string
//	tool.annotations.readOnlyHint, destructiveHint,
//	    idempotentHint, openWorldHint                     true or false
//	arguments                                             what the call brings
//	server.name                                           a string
//
// A fact that is not known is an empty string or list and never an error; has()
// tells it from a known one. An annotation the server does not declare, or
// declares as something else than its type, reads as the default of the MCP
// specification, which is the careful one: a tool nothing is known of may write
// and destroy, and reaches out. Annotations are the server's word for itself: let
// them forbid, never allow.
//
// Arguments are the client's to choose, so a member may be missing or of any
// type; reading one that is missing is an error. Guard it with has(), or with an
// in. Integers are compared exactly up to 64 bits. A JavaScript server rounds
// them beyond 2^53, so a rule that is to bind it should not hang on their last
// digits. Other numbers are IEEE doubles; one that has none is an error.
//
// # What it costs
//
// [Compile] does the work once: it parses, checks the types, and refuses an
// expression that could take too long by CEL's own estimate. A [Program] with a
// loop or a pattern in it stops at a limit of cost, and of time.
//
// The CEL engine is set up when the first expression needs it. A plain path, a
// string, and comparisons such as
//
//	session.trust == "sandboxed"
//	"admin" in principal.roles && server.name != "git"
//
// do without it, at compile time and later.
//
// # When an expression cannot be evaluated
//
// [Program.Eval] returns an error. A layer that enriches then leaves the message
// as it is; a layer that enforces refuses. The error's text holds no value of a
// call or a session, so it may be logged.
package expression
