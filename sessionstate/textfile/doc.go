// Package textfile reads the files that people and programs write for attache:
// configurations, policies, key files, the files of MCP clients. [Read] returns the content of
// a file that meets [Rules]; [ParseYAML] parses YAML after checking that it is safe to parse.
//
// Wrong paths and hostile files must cost neither time nor memory. The package refuses named
// pipes without waiting for them, bounds the size of files, and refuses text that is nested
// deeper than a person would write before it reaches a recursive parser.
package textfile
