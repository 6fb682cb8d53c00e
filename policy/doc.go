// Package policy says which policies and objectives hold for a scope, and
// writes them as the one block of text that a session is given.
//
// A [Scope] is what one team wrote down: policies, objectives, and the parent
// scope it builds on. Scopes form a chain (organisation, team, project, user).
// [Resolve] walks that chain and answers with an [Effective]: what holds in the
// end, in the order in which it is to be read. [Render] turns an Effective into
// text, [Digest] names that text.
//
//	scopes, err := filesource.Load("policies")       // or any other Source
//	effective, err := policy.Resolve(scopes, "acme/platform")
//	text := policy.Render(effective, 16<<10)
//
// Where scopes come from is a [Source]: a directory of YAML files
// (policy/filesource), an HTTP endpoint (policy/httpsource). Every Source
// passes the suite in policy/policytest.
//
// Rules of the chain:
//
//   - Prepends of the outermost scope come first, appends of the outermost
//     last. Within a scope the order is the one written down.
//   - A policy's name is its identity. A child's policy takes the place of a
//     parent's with the same name, and then stands where the child's policies
//     stand. [Scope.Drop] removes an inherited one.
//   - Objectives add up, outermost first; one that is there already is not
//     repeated.
//
// What the package does not do: it caches nothing, it decides no permission
// (policies here are sentences for a model to read, not rules that are
// enforced), and it knows nothing of the protocol the text travels in.
package policy
