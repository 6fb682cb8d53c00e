package identity

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckedIsBounded(t *testing.T) {
	var c checked
	long := strings.Repeat("x", maxCheckedBytes+1)
	c.add(long, &checkedToken{})
	if c.get(long) != nil {
		t.Error("a long token is remembered")
	}
	for i := range maxChecked + 10 {
		token := fmt.Sprint(i)
		seen := &checkedToken{}
		if c.add(token, seen); c.get(token) != seen {
			t.Fatalf("token %d is not remembered", i)
		}
	}
	if len(c.bySum) > maxChecked {
		t.Errorf("%d tokens are remembered", len(c.bySum))
	}
}

// The tokens of an earlier key set are forgotten, so that its memory can be freed.
func TestCheckedForgetsKeySets(t *testing.T) {
	var c checked
	before, after := &checkedToken{set: &keySet{}}, &checkedToken{set: &keySet{}}
	c.add("a", before)
	if c.add("b", after); c.get("a") != nil || c.get("b") != after {
		t.Error("a token of another key set is remembered")
	}
}
