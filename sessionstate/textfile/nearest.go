package textfile

import "strings"

// Nearest returns the one of words for which word is probably a typing error: the one with the
// smallest distance of at most limit, or "" if there is none. Case does not matter; of several equally near
// words the first one counts.
func Nearest(word string, words []string, limit int) string {
	best := ""
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d <= limit {
			best, limit = w, d-1
		}
	}
	return best
}

// distance returns how many bytes must be inserted, removed, replaced or swapped with their
// neighbour to turn a into b. Strings of more than 100 bytes have nothing in common.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return max(len(a), len(b))
	}
	// Row i has the distances of a[:i] to each beginning of b (optimal string alignment).
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
