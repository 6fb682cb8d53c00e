package room

import "testing"

func TestBorrow(t *testing.T) {
	for _, size := range []int{1, Smallest, Smallest + 1, 5 << 20} {
		r := Borrow(size)
		if len(r.Bytes) != 0 || cap(r.Bytes) < size || cap(r.Bytes) >= 2*max(size, Smallest) {
			t.Errorf("Borrow(%d) has capacity %d", size, cap(r.Bytes))
		}
		r.Bytes = append(r.Bytes, 'x')
		r.Release()
	}
	if r := Borrow(Smallest<<(len(free)-1) + 1); r != nil {
		t.Errorf("Borrow of more than the largest size has capacity %d", cap(r.Bytes))
	}
}

// A Room is not lent again before its last holder has released it.
func TestHold(t *testing.T) {
	r := Borrow(1)
	r.Hold()
	r.Release()
	r.Bytes = append(r.Bytes, 'x')
	for range 100 {
		other := Borrow(1)
		if other == r {
			t.Fatal("held memory was lent again")
		}
		defer other.Release()
	}
	r.Release()
}
