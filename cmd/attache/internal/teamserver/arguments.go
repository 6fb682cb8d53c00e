package teamserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"

	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// checkArguments refuses arguments that are no object, and text with half a character in it,
// which package json would replace (T18).
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

// hasLoneSurrogate reports whether a valid JSON text has the escape of one half of a surrogate
// pair without the other.
func hasLoneSurrogate(raw []byte) bool {
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i+1 < len(raw); {
		unit, ok := escapedUnit(raw[i:])
		switch {
		case !ok:
			i += 2
		case !utf16.IsSurrogate(unit):
			i += 6
		default:
			second, _ := escapedUnit(raw[i+6:])
			if utf16.DecodeRune(unit, second) == '\ufffd' {
				return true
			}
			i += 12
		}
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			return false
		}
		i += next
	}
	return false
}

// escapedUnit returns the UTF-16 unit whose escape text begins with.
func escapedUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// decode reads the arguments of a call. An argument that the tool does not have is refused: it
// may say what the agent wants, and would be dropped.
func (c *call) decode(to any) error {
	if len(c.arguments) == 0 {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(c.arguments))
	in.DisallowUnknownFields()
	err := in.Decode(to)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return store.Refusal(wrong.Field + " must be " + kind(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return store.Refusal("there is no argument " + name + ": there are " + strings.Join(argumentNames(to), ", "))
	}
	return store.Refusal("the arguments are not valid")
}

// kind returns what values of a type are called.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a " + t.String()
}

// argumentNames returns the names of the arguments that decode reads into to.
func argumentNames(to any) (names []string) {
	t := reflect.TypeOf(to).Elem()
	for i := range t.NumField() {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return names
}
