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
	if len(u.ids) != maxUnread {
		t.Errorf("%d ids are kept", len(u.ids))
	}
	for i := range n {
		if id := []byte(strconv.Itoa(i)); !u.Has(id) || !u.Take(id) {
			t.Fatalf("%s is forgotten", id)
		}
	}
	if !u.Any() || !u.Has([]byte("0")) {
		t.Errorf("full: %v", u.full)
	}
}

// A client may cancel two calls with the same id, so two replies may come.
func TestUnreadTwice(t *testing.T) {
	var u Unread
	u.Add([]byte("1"))
	u.Add([]byte("2"))
	u.Add([]byte("1"))
	for i, want := range []bool{true, true, false} {
		if got := u.Take([]byte("1")); got != want {
			t.Errorf("reply %d: %v", i, got)
		}
	}
	if !u.Any() || !u.Take([]byte("2")) || u.Any() {
		t.Error("the other id is not the last one")
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

// IsOdd tells the ids that a server may spell otherwise, and LooseNumber reads them.
func TestSpellings(t *testing.T) {
	for _, test := range []struct {
		id     string
		odd    bool
		number float64
		loose  bool
	}{
		{"1", false, 1, true},
		{"-0", true, 0, true},
		{"-1", false, -1, true},
		{"999999999999999", false, 999999999999999, true},
		{"1000000000000000", true, 1000000000000000, true},
		{`"1000000000000000"`, false, 1000000000000000, true},
		{`" 1 "`, false, 1, true},
		{`"a"`, false, 0, false},
		{"", false, 0, false},
	} {
		if test.id != "" && IsOdd([]byte(test.id)) != test.odd {
			t.Errorf("%s is odd: %v", test.id, !test.odd)
		}
		if n, ok := LooseNumber([]byte(test.id)); n != test.number || ok != test.loose {
			t.Errorf("%s is the number %v, %v", test.id, n, ok)
		}
	}
}
