// Package expression evaluates the expressions in attache's rules: values and conditions that
// depend on a session and a call.
//
//	when:  session.trust == "sandboxed" && !("admin" in principal.roles)
//	when:  has(arguments.path) && !arguments.path.startsWith(session.workspace.path)
//	when:  tool.annotations.destructiveHint
//	value: principal.tenant
//	set:   '["agent", session.trust]'
//
// Expressions are CEL (https://cel.dev), with the standard functions and macros. They
// can read these names:
//
//	session.id, session.conversation, session.trust       strings
//	session.workspace.path, session.workspace.id          strings
//	principal.user, tenant, email, plan, scope            strings
//	principal.roles, principal.permissions                lists of strings
//	tool.name                                             a string
//	tool.annotations.title                                a string
//	tool.annotations.readOnlyHint, destructiveHint,
//	    idempotentHint, openWorldHint                     true or false
//	arguments                                             of the call, an object
//	server.name                                           a string
//
// An unknown fact is an empty string or list and never an error; has() reports whether a fact
// is known. An annotation that the server does not declare, or declares with another type, has
// the default of the MCP specification: such a tool may write, may destroy, and reaches other
// systems. A server can declare anything, so use annotations to forbid and never to allow.
//
// The client chooses the arguments, so a member may be missing or of any type. Reading
// a missing member is an error: test for it with has() or in. Both are errors themselves for a
// member of a text, a number or null. Comparisons of integers are exact up to 64 bits. A
// JavaScript server rounds integers beyond 2^53, so a rule should not depend on their last
// digits. Other numbers are IEEE doubles; a number outside their range is an error.
//
// # What it costs
//
// [Compile] parses an expression once, checks the types, and refuses it if CEL estimates that
// it could take too long. A [Program] with a loop or a pattern has limits of cost and time.
//
// The CEL engine is set up when the first expression needs it. A plain path, a
// string, and comparisons such as
//
//	session.trust == "sandboxed"
//	"admin" in principal.roles && server.name != "git"
//
// need no engine, neither to compile nor to evaluate.
//
// # When an expression cannot be evaluated
//
// [Program.Eval] returns an error. A layer that enriches then leaves the message unchanged; a
// layer that enforces refuses the call. Errors contain no values of a call or session, so they
// may be logged.
package expression
