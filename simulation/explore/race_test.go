//go:build race

package explore

// underRace: searches take ten times as long, and nothing in them runs at once.
const underRace = true
