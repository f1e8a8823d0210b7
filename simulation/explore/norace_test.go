//go:build !race

package explore

const underRace = false
