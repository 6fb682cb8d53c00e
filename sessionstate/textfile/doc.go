// Package textfile reads the files that people and programs write for attache:
// configurations, policies, key files, the files of MCP clients. [Read] returns the
// content of a file that is what it has to be; [ParseYAML] returns the syntax tree of
// YAML that is safe to parse.
//
// A wrong path, and a hostile file, must cost neither time nor memory: a named pipe
// is refused and not waited for, a file is read up to a bound, and what is nested
// deeper than a person would write is refused before a recursive parser sees it.
package textfile
