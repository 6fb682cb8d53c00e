// Package setting reads options from a configuration file, variables and flags. An
// [Option] binds one key to a variable of the program; its [Value] says which texts are
// accepted. Every mistake is reported with its place.
package setting

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Prefix begins the names of attache's own environment variables.
const Prefix = "ATTACHE"

// An Option is one value that can be set, and the ways to set it.
type Option struct {
	// Key is its place in the configuration file, empty if it has none.
	Key string
	// Flag is its name on the command line, empty if it has none. An option with a
	// flag can also be set by a variable; see [Option.Variable].
	Flag string
	// Command is the only command that has the flag, "" for all that wrap a server.
	Command string
	// Hint stands for the value in the help of the flag.
	Hint string
	Help string
	// Injected ends the name of the variable that attache gives the server for
	// this value, and reads as well, under each of session.env_prefixes.
	Injected string
	Value    Value
}

// A Value reads a text or a part of a file into a variable of the program. It is a
// [Scalar] or a [Structure].
type Value interface {
	// String returns the value as the configuration file writes it, or what may
	// be shown of it.
	String() string
	// Schema returns the JSON Schema of the value in the configuration file.
	Schema() map[string]any
}

// A Scalar is a value written as one word.
type Scalar interface {
	Value
	// Set reads text. A relative path is relative to base.
	Set(text, base string) error
}

// A Structure is a value with parts. It reads itself from the syntax tree.
type Structure interface {
	Value
	// Read reads n, the value of key.
	Read(r *Reader, key string, n ast.Node)
}

// Variable returns the name of the flag's own variable: ATTACHE_WORKSPACE_ID is
// that of --workspace-id.
func (o Option) Variable() string {
	return Prefix + "_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
}

// Shown returns the value as it may be shown: without secrets.
func (o Option) Shown() string {
	if v, ok := o.Value.(interface{ Shown() string }); ok {
		return v.Shown()
	}
	return o.Value.String()
}

// Entries returns the names of the entries, in order, if the value is a list of
// [Entries].
func (o Option) Entries() []string {
	if v, ok := o.Value.(entryNamer); ok {
		return v.names()
	}
	return nil
}

// Entry returns the entry of that name as the configuration writes it, "" if there is
// none.
func (o Option) Entry(name string) string {
	if v, ok := o.Value.(entryNamer); ok {
		return v.named(name)
	}
	return ""
}

// find returns the option of key.
func find(options []Option, key string) (Option, bool) {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}

// text returns options as the configuration writes them, without those that have no
// value, or the same as in defaults.
func text(options, defaults []Option) string {
	var all []string
	for i, o := range options {
		s := o.Value.String()
		if s != "" && s != "[]" && s != "{}" && (defaults == nil || s != defaults[i].Value.String()) {
			all = append(all, o.Key+": "+s)
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}
