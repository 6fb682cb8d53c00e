package replay

import (
	"cmp"
	"slices"
)

// compare returns the differences of both streams, in the order of the recording. Lines
// that were not recorded come last.
func (p *play) compare() []Difference {
	var out []Difference
	for _, s := range p.streams() {
		out = append(out, s.compare()...)
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(uint(a.Event), uint(b.Event)) }) // uint(-1) is the largest
	return out
}

func (s *stream) compare() []Difference {
	want, got := unmatched(s.want, s.got)
	want, got = withoutSwapped(want, got)
	var out []Difference
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0].window < got[0].window:
			out = append(out, Difference{At: s.at, Event: want[0].event, Want: want[0].raw})
			want = want[1:]
		case len(want) == 0 || got[0].window < want[0].window:
			out = append(out, Difference{At: s.at, Event: -1, Got: got[0].raw})
			got = got[1:]
		default:
			out = append(out, Difference{At: s.at, Event: want[0].event, Want: want[0].raw, Got: got[0].raw})
			want, got = want[1:], got[1:]
		}
	}
	return out
}

// unmatched returns the lines that are not in the longest common subsequence.
func unmatched(want, got []line) (w, g []line) {
	for len(want) > 0 && len(got) > 0 && equal(want[0], got[0]) {
		want, got = want[1:], got[1:]
	}
	for len(want) > 0 && len(got) > 0 && equal(want[len(want)-1], got[len(got)-1]) {
		want, got = want[:len(want)-1], got[:len(got)-1]
	}
	if len(want)*len(got) > maxTable {
		return want, got // too many lines differ
	}
	t := table(want, got)
	i, j := 0, 0
	for i < len(want) && j < len(got) {
		switch {
		case equal(want[i], got[j]):
			i, j = i+1, j+1
		case t[i+1][j] >= t[i][j+1]:
			w = append(w, want[i])
			i++
		default:
			g = append(g, got[j])
			j++
		}
	}
	return append(w, want[i:]...), append(g, got[j:]...)
}

// maxTable bounds the size of the table.
const maxTable = 16 << 20

// table returns the lengths of the longest common subsequences of want[i:] and got[j:].
func table(want, got []line) [][]int32 {
	t := make([][]int32, len(want)+1)
	for i := range t {
		t[i] = make([]int32, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if equal(want[i], got[j]) {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}

// withoutSwapped removes the lines that came in another order within the same window.
func withoutSwapped(want, got []line) (w, g []line) {
	got = slices.Clone(got)
	for _, l := range want {
		i := slices.IndexFunc(got, func(o line) bool { return o.window == l.window && equal(o, l) })
		if i < 0 {
			w = append(w, l)
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	return w, got
}
