package callid

// An Index finds values by the id of a request. Make one with NewIndex.
type Index[V any] struct {
	tiny  map[uint64]*V // of ids up to tinyLen
	short map[Key]*V
	long  map[string]*V
}

// NewIndex returns an empty index.
func NewIndex[V any]() Index[V] {
	return Index[V]{tiny: map[uint64]*V{}, short: map[Key]*V{}, long: map[string]*V{}}
}

// Get returns the value for the results of Of, nil if there is none.
func (x *Index[V]) Get(k *Key, long string) *V {
	switch {
	case long != "":
		return x.long[long]
	case k.n <= tinyLen:
		return x.tiny[k.tiny()]
	}
	return x.short[*k]
}

// Set sets the value for the results of Of; nil removes it.
func (x *Index[V]) Set(k *Key, long string, v *V) {
	switch {
	case long != "":
		put(x.long, long, v)
	case k.n <= tinyLen:
		put(x.tiny, k.tiny(), v)
	default:
		put(x.short, *k, v)
	}
}

func put[K comparable, V any](m map[K]*V, k K, v *V) {
	if v == nil {
		delete(m, k)
	} else {
		m[k] = v
	}
}

// All yields the values.
func (x *Index[V]) All(yield func(*V) bool) {
	_ = each(x.tiny, yield) && each(x.short, yield) && each(x.long, yield)
}

func each[K comparable, V any](m map[K]*V, yield func(*V) bool) bool {
	for _, v := range m {
		if !yield(v) {
			return false
		}
	}
	return true
}
