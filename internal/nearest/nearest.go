// Package nearest finds what somebody may have meant who has misspelt a name.
package nearest

import (
	"slices"
	"strings"
)

// Of returns the candidate that is most like s, "" when there is none: that with most of the words of s where it has several, so
// that max_readers is max_queue_readers; then the one with the smallest edit distance, and the first by name among equals.
func Of(s string, candidates []string) string {
	if len(candidates) == 0 {
		return ""
	}
	return slices.MinFunc(slices.Sorted(slices.Values(candidates)), func(a, b string) int {
		if d := missing(s, a) - missing(s, b); d != 0 {
			return d
		}
		return Distance(s, a) - Distance(s, b)
	})
}

// missing is how many of the words of s, where it has several, are no words of the candidate.
func missing(s, candidate string) (n int) {
	has, want := words(candidate), words(s)
	if len(want) == 1 {
		return 0 // that it is one of many words says little
	}
	for _, w := range want {
		if !slices.Contains(has, w) {
			n++
		}
	}
	return n
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == '_' || c == '.' })
}

// Distance is Levenshtein's, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
