package accept

import "testing"

// A client accepts the kinds that its header lists, except those with the quality 0.
func TestParse(t *testing.T) {
	for _, row := range []struct {
		lines []string
		want  Accept
	}{
		{nil, Accept{JSON: true}},
		{[]string{"application/json, text/event-stream"}, Accept{true, true}},
		{[]string{"application/json", "text/event-stream"}, Accept{true, true}},
		{[]string{"application/json, text/event-stream", "image/png"}, Accept{true, true}},
		{[]string{"*/*"}, Accept{true, true}},
		{[]string{"APPLICATION/*"}, Accept{JSON: true}},
		{[]string{"text/*"}, Accept{Events: true}},
		{[]string{"application/json;q=0.5, text/event-stream;q=0.0"}, Accept{JSON: true}},
		{[]string{"application/json;q=0, text/event-stream;charset=utf-8"}, Accept{Events: true}},
		{[]string{"application/json;q=1;q=2, text/event-stream"}, Accept{Events: true}},
		{[]string{"text/html"}, Accept{}},
		{[]string{""}, Accept{}},
	} {
		if got, ok := Parse(row.lines); got != row.want || ok != (row.want != Accept{}) {
			t.Errorf("%q: %+v, %t", row.lines, got, ok)
		}
	}
}

func TestIsJSON(t *testing.T) {
	for text, want := range map[string]bool{
		"application/json": true, "Application/JSON; charset=utf-8": true, "application/json; =": false, "text/plain": false, "": false,
	} {
		if IsJSON(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
