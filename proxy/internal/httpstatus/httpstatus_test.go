package httpstatus

import "testing"

func TestBeside(t *testing.T) {
	for status, relayed := range map[int]bool{
		0: false, 200: false, 404: false, 428: false, 429: true, 430: false, 499: false, 500: true, 599: true, 600: false,
	} {
		beside := Beside(status, "7")
		got, after := Of(beside)
		if (beside != nil) != relayed || (got == status && after == "7") != relayed || !relayed && (got != 0 || after != "") {
			t.Errorf("%d: %v, %d, %q", status, beside, got, after)
		}
	}
	for status, relayed := range map[int]bool{
		200: false, 302: false, 400: true, 401: false, 403: false, 404: true, 405: true, 406: true, 422: true, 429: true, 503: true,
	} {
		if got, _ := Of(BesideDiscover(status, "")); (got == status) != relayed {
			t.Errorf("%d to server/discover: %d", status, got)
		}
	}
	if status, _ := Of("text"); status != 0 {
		t.Errorf("a Beside of another kind has status %d", status)
	}
}
