package limit

import (
	"errors"
	"testing"
)

// One principal that sends large bodies slowly must not keep others from sending theirs.
func TestBodiesOfOnePrincipal(t *testing.T) {
	l := &Limits{Body: 10, Bodies: 100}
	taken := 0
	for l.TakeBytes("a", 10) {
		taken++
	}
	if taken != 5 || !l.TakeBytes("b", 10) || l.TakeBytes("a", 1) {
		t.Errorf("a principal has taken %d bodies", taken)
	}
	l.GiveBytes("a", 10)
	if !l.TakeBytes("a", 10) {
		t.Error("bytes that were given back are not free")
	}
	for l.TakeBytes("", 10) { // clients without a credential are one principal
		taken++
	}
	if taken != 9 {
		t.Errorf("%d bodies were taken", taken)
	}
	for range taken - 5 {
		l.GiveBytes("", 10)
	}
	for range 5 {
		l.GiveBytes("a", 10)
	}
	l.GiveBytes("b", 10)
	if l.bytes.all != 0 || len(l.bytes.of) != 0 {
		t.Errorf("%d bytes are left, of %d principals", l.bytes.all, len(l.bytes.of))
	}
	small := &Limits{Body: 10, Bodies: 12}
	if !small.TakeBytes("a", 12) {
		t.Error("a body at the limit is refused")
	}
}

// One principal with many sessions must not keep others from being served.
func TestRequestsOfOnePrincipal(t *testing.T) {
	l := &Limits{InFlight: 1000}
	begun := func(principal string) (n int) {
		for l.Begin(principal) == nil {
			n++
		}
		return n
	}
	if a := begun("a"); a != 500 || !errors.Is(l.Begin("a"), errHalf) { // the log must not blame all clients
		t.Errorf("%d requests of a were begun, then: %v", a, l.Begin("a"))
	}
	for range 500 {
		l.Finish("a")
	}
	if a, b, unknown := begun("a"), begun("b"), begun(""); a != 500 || b != 500 || unknown != 0 {
		t.Errorf("%d requests of a, %d of b and %d of nobody were begun", a, b, unknown)
	}
	l.Finish("a")
	if begun("") != 1 {
		t.Error("a request that is finished still counts")
	}
	for range 499 {
		l.Finish("a")
	}
	for range 500 {
		l.Finish("b")
	}
	l.Finish("")
	if _, n := l.Counts(); n != 0 || len(l.requests.of) != 0 {
		t.Errorf("%d requests are left, of %d principals", n, len(l.requests.of))
	}
	if small := (&Limits{InFlight: 1}); small.Begin("a") != nil || small.Begin("a") == nil {
		t.Error("a limit of 1 does not allow just one request")
	}
}
