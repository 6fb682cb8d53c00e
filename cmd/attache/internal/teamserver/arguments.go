package teamserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// checkArguments refuses arguments that are not an object, and strings with a lone surrogate, which
// package json would replace.
func checkArguments(raw json.RawMessage) error {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] != '{':
		return store.Refusal("the arguments must be an object")
	case hasLoneSurrogate(raw):
		return store.Refusal("the arguments contain half a character (a lone surrogate)")
	}
	return nil
}

// escapes matches the escapes in a JSON text: a surrogate pair, a lone surrogate, or any other escape.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.`)
})

// hasLoneSurrogate reports whether a valid JSON text contains the escape of a lone surrogate. It scans
// all escapes in order, so that no match begins inside another escape.
func hasLoneSurrogate(raw []byte) bool {
	const lone = len(`\ud800`)
	return slices.ContainsFunc(escapes().FindAll(raw, -1), func(e []byte) bool { return len(e) == lone })
}

// decode decodes the arguments of a call into the struct that to points to. It refuses unknown
// arguments: if it ignored them, the agent would believe that they had an effect.
func (c *call) decode(to any) error {
	if len(c.arguments) == 0 {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(c.arguments))
	in.DisallowUnknownFields()
	err := in.Decode(to)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return store.Refusal(wrong.Field + " must be " + kind(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return store.Refusal("there is no argument " + name + ": the arguments are " + strings.Join(argumentNames(to), ", "))
	}
	return store.Refusal("the arguments are not valid")
}

// kind describes the values of a type, for an error message.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a " + t.String()
}

// argumentNames returns the names of the arguments in the struct that to points to.
func argumentNames(to any) (names []string) {
	t := reflect.TypeOf(to).Elem()
	for field := range t.Fields() {
		names = append(names, field.Tag.Get("json"))
	}
	return names
}
