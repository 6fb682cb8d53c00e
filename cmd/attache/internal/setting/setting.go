// Package setting reads options from a configuration file, environment variables and flags. An
// [Option] binds one key to a variable of the program, and its [Value] parses and checks the text.
// Every mistake is reported with its place.
package setting

import (
	"slices"
	"strings"
)

// Prefix begins the names of attache's environment variables.
const Prefix = "ATTACHE"

// An Option is one value that can be set, and the ways to set it.
type Option struct {
	// Key is the key in the configuration file, empty if there is none.
	Key string
	// Flag is the name of the flag, empty if there is none. An option with a
	// flag can also be set by a variable; see [Option.Variable].
	Flag string
	// Command is the only command that has the flag, "" for all that wrap a server.
	Command string
	// Hint stands for the value in the help of the flag.
	Hint string
	Help string
	// Injected is the end of the name of an environment variable. For each prefix in
	// session.env_prefixes, attache reads that variable and sets it for the server.
	Injected string
	Value    Value
}

// A Value stores a text, or part of a file, in a variable of the program. It is a
// [Scalar] or a [Structure]. It may also have the methods Shown, which returns the
// value without secrets, and EmptyAdvice, which returns what to do about a key without
// a value; and a Scalar may have Written, which reports whether it accepts a YAML node.
type Value interface {
	// String returns the value as the configuration file writes it, or a
	// replacement for a secret.
	String() string
	// Schema returns the JSON Schema of the value in the configuration file.
	Schema() map[string]any
}

// A Scalar is a value written as one text.
type Scalar interface {
	Value
	// Set parses text and stores it. A relative path is relative to base.
	Set(text, base string) error
}

// Variable returns the name of the flag's variable: ATTACHE_WORKSPACE_ID for --workspace-id.
func (o Option) Variable() string {
	return Prefix + "_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
}

// Shown returns the value without secrets.
func (o Option) Shown() string {
	if v, ok := o.Value.(interface{ Shown() string }); ok {
		return v.Shown()
	}
	return o.Value.String()
}

// An Entry is an element of a list of [Entries].
type Entry struct {
	Name string
	Text string // as the configuration writes it, without default values
}

// Entries returns the entries, in order, if the value is a list of [Entries].
func (o Option) Entries() []Entry {
	if v, ok := o.Value.(interface{ entries() []Entry }); ok {
		return v.entries()
	}
	return nil
}

func find(options []Option, key string) (Option, bool) {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}

// text returns options as the configuration writes them. It leaves out those without a value and
// those with the same value as in defaults.
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
