package expression

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// literals matches values that are the same in CEL and in JSON: strings without escapes, lists,
// and integers that both represent exactly. Maps are excluded, because they may have duplicate
// keys.
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:"[^"\\\x00-\x1f]*"|(?:-?[1-9][0-9]{0,14}|0|true|false|null)\b|[\[\],\s])*$`)
})

// parseLiteral returns the JSON of an expression that is a literal and so needs no engine.
func parseLiteral(src string) ([]byte, bool) {
	if !json.Valid([]byte(src)) || !literals().MatchString(src) {
		return nil, false
	}
	var out bytes.Buffer
	err := json.Compact(&out, []byte(src))
	return out.Bytes(), err == nil
}
