package settings

// nearest is the candidate with the fewest single-character edits from name;
// of equals, the first. Candidates must not be empty.
func nearest(name string, candidates []string) string {
	best, fewest := candidates[0], edits(name, candidates[0])
	for _, c := range candidates[1:] {
		if n := edits(name, c); n < fewest {
			best, fewest = c, n
		}
	}
	return best
}

// edits is how many insertions, deletions, replacements and swaps of
// neighbours lead from a to b (the restricted Damerau-Levenshtein distance).
// Swaps count as one, since they are the commonest slip: tabel, bacth-size.
func edits(a, b string) int {
	two, one := make([]int, len(b)+1), make([]int, len(b)+1) // the rows before
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := one[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, one[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
