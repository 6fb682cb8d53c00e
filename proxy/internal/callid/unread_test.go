package callid

import (
	"strconv"
	"testing"
)

// Unread forgets no cancelled call, and its memory is bounded.
func TestUnreadForgetsNothing(t *testing.T) {
	var u Unread
	if u.Any() || u.Has([]byte("1")) || u.Take([]byte("1")) {
		t.Fatal("a new Unread is not empty")
	}
	const n = maxUnread + 10
	for i := range n {
		u.Add([]byte(strconv.Itoa(i)))
	}
	for i := range n {
		if id := []byte(strconv.Itoa(i)); !u.Has(id) || !u.Take(id) {
			t.Fatalf("%s is forgotten", id)
		}
	}
	if len(u.ids) > maxUnread || !u.Any() || !u.Has([]byte("0")) {
		t.Errorf("%d ids are kept, full: %v", len(u.ids), u.full)
	}
}

func TestUnreadSpellings(t *testing.T) {
	for _, test := range []struct {
		added, asked string
		want         bool
	}{
		{"1", "1", true},
		{"1", `"1"`, false},
		{"1", "2", false},
		{"-0", "0", true},
		{"9007199254740993", "9007199254740992", true},
		{`"a"`, `"\u0061"`, true},
		{`"a"`, `"b"`, false},
	} {
		var u Unread
		u.Add([]byte(test.added))
		if u.Has([]byte(test.asked)) != test.want || u.Take([]byte(test.asked)) != test.want || u.Any() == test.want {
			t.Errorf("%s equals %s: want %v", test.added, test.asked, test.want)
		}
	}
}
