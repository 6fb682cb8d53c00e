package expression

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// literals matches lists and words that mean the same in CEL and in JSON: no escapes,
// which differ; no maps, whose keys might be equal; and of numbers only integers that
// both can hold.
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:"[^"\\\x00-\x1f]*"|(?:-?[1-9][0-9]{0,14}|0|true|false|null)\b|[\[\],\s])*$`)
})

// parseLiteral returns the JSON of an expression that is only a list, a number or a
// word, for which the engine is not needed.
func parseLiteral(src string) ([]byte, bool) {
	if !json.Valid([]byte(src)) || !literals().MatchString(src) {
		return nil, false
	}
	var out bytes.Buffer
	err := json.Compact(&out, []byte(src))
	return out.Bytes(), err == nil
}
