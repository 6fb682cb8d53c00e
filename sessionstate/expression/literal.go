package expression

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// literals matches lists and words that mean the same in CEL and in JSON: no
// escapes, of which the two have different ones, no maps, whose keys might be equal,
// and no numbers but integers of a size that both take.
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:"[^"\\\x00-\x1f]*"|(?:-?[1-9][0-9]{0,14}|0|true|false|null)\b|[\[\],\s])*$`)
})

// parseLiteral returns the JSON of an expression that is nothing but a list, a
// number or a word. The engine, which would say the same, is not needed for it.
func parseLiteral(src string) ([]byte, bool) {
	if !json.Valid([]byte(src)) || !literals().MatchString(src) {
		return nil, false
	}
	var out bytes.Buffer
	err := json.Compact(&out, []byte(src))
	return out.Bytes(), err == nil
}
