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
