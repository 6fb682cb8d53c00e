package event

import "testing"

// An event has the size that Size returns, and each carriage return starts a data line.
func TestAppend(t *testing.T) {
	for frame, want := range map[string]string{
		`{}`:          "event: message\ndata: {}\n\n",
		"{\r}":        "event: message\ndata: {\ndata: }\n\n",
		"\r{\r\r} \r": "event: message\ndata: \ndata: {\ndata: \ndata: } \ndata: \n\n",
	} {
		got := Append([]byte("x"), []byte(frame))
		if string(got) != "x"+want {
			t.Errorf("%q: got %q, want %q", frame, got, want)
		}
		if n := Size([]byte(frame)); n != len(want) {
			t.Errorf("%q: the size is %d, want %d", frame, n, len(want))
		}
	}
}
