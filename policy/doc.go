// Package policy finds the policies and objectives of a scope, and renders them as a block of
// text for the model.
//
// A [Scope] has the policies and objectives of one team, and the name of the parent scope
// from which it inherits. Scopes form a chain (organisation, team, project, user).
// [Resolve] follows the chain and returns an [Effective]: the policies and objectives that
// apply, in reading order. [Render] converts an Effective to text, and [Digest] identifies that
// text.
//
//	scopes, err := filesource.Load("policies")       // or any other Source
//	effective, err := policy.Resolve(scopes, "acme/platform")
//	text := policy.Render(effective, 16<<10)
//
// A [Source] provides scopes: a directory of YAML files (policy/filesource) or an HTTP endpoint
// (policy/httpsource). The test suite for every Source is policy/policytest.
//
// Rules of the chain:
//
//   - Prepends of the outermost scope are first, appends of the outermost scope last.
//     Within a scope, policies keep the order of the file.
//   - A policy's name is its identity. A child's policy replaces a parent's policy of the
//     same name, and has its place among the child's policies. [Scope.Drop] removes an
//     inherited policy.
//   - Objectives are concatenated, outermost first, without duplicates.
//
// The package does not cache or enforce policies, which are only text for a model, and does not
// depend on the protocol that carries the text.
package policy
