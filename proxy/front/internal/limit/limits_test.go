package limit

import "testing"

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
	if l.bytes != 0 || len(l.bytesOf) != 0 {
		t.Errorf("%d bytes are left, of %d principals", l.bytes, len(l.bytesOf))
	}
	small := &Limits{Body: 10, Bodies: 12}
	if !small.TakeBytes("a", 12) {
		t.Error("a body at the limit is refused")
	}
}
