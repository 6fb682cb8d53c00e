// Package policy finds the policies and objectives of a scope, and renders them as the
// block of text that a session is given.
//
// A [Scope] has the policies and objectives of one team, and the name of the parent scope
// that it inherits from. Scopes form a chain (organisation, team, project, user).
// [Resolve] walks that chain and returns an [Effective]: the policies and objectives that
// apply, in reading order. [Render] turns an Effective into text, and [Digest] names that
// text.
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
//   - Prepends of the outermost scope come first, appends of the outermost scope last.
//     Within a scope, policies keep the order of the file.
//   - A policy's name is its identity. A child's policy replaces a parent's policy of the
//     same name, and stands among the child's policies. [Scope.Drop] removes an inherited
//     policy.
//   - Objectives are added up, outermost first, without duplicates.
//
// The package caches nothing and enforces nothing (a policy is a sentence for a model to
// read), and does not know the protocol that carries the text.
package policy
