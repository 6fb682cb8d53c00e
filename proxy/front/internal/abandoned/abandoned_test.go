package abandoned

import (
	"strconv"
	"testing"
)

// An id and a token are in use from the cancellation to the reply, and other ids and tokens are not.
func TestCalls(t *testing.T) {
	var c Calls
	c.Settle("1") // of a call that was never abandoned
	c.Add("1", "a")
	c.Add("2", "")
	for _, row := range []struct {
		id, token string
		want      bool
	}{
		{"1", "", true}, {"3", "a", true}, {"2", "b", true}, {"3", "b", false}, {"3", "", false}, {"a", "1", false},
	} {
		if got := c.Has(row.id, row.token); got != row.want {
			t.Errorf("the id %s or the token %q is taken: %v", row.id, row.token, got)
		}
	}
	c.Settle("2")
	if c.Has("2", "") || !c.Has("1", "") {
		t.Error("the reply to one call settles another one, or not its own")
	}
	c.Settle("1")
	if c.Has("1", "a") || len(c.token)+len(c.taken) > 0 {
		t.Error("the id and the token are kept after the reply")
	}
}

// A client that abandons calls without end takes no more memory than maxKept ids and tokens.
func TestCallsAreBounded(t *testing.T) {
	var c Calls
	for i := range maxKept/2 + 1 {
		c.Add(strconv.Itoa(i), "token of "+strconv.Itoa(i))
	}
	if n := len(c.token) + len(c.taken); n != 2 || !c.Has(strconv.Itoa(maxKept/2), "") {
		t.Errorf("%d ids and tokens are kept of %d calls, want those of the last", n, maxKept/2+1)
	}
}
