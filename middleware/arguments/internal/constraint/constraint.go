// Package constraint reads the constraints of a JSON Schema that attache follows: which values a property
// accepts, and by which keywords the objects around it are constrained.
//
// It does not follow every keyword. In doubt it says that a value is not accepted, because a call that is
// valid must stay valid when a value is filled in; MayAllow and MayBeObject say yes in doubt.
package constraint

import (
	"bytes"
	"cmp"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Value is a JSON value.
type Value struct {
	// JSON is the value itself.
	JSON []byte
	// Text is the text of a string. IsText says that the value is one.
	Text   string
	IsText bool
}

// kind returns the kind of the value.
func (v *Value) kind() Kinds { return cmp.Or(kindAt[v.JSON[0]], Numbers) }

// IsNumber reports whether the value is a number.
func (v *Value) IsNumber() bool { return v.kind() == Numbers }

// equals reports whether two values are equal. It compares strings without their escapes.
func (v *Value) equals(other wire.Value) bool {
	if v.IsText {
		return other.Equals(v.Text)
	}
	return bytes.Equal(v.JSON, other.Raw)
}
