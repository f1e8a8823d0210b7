package cost

import "math"

// deliver is what the delivery of one bucket's messages asks for, a second, when they
// are committed at random instants, independent of each other (a Poisson process of
// transactions).
//
// A bucket is looked at every PollInterval, and when a commit is notified. A look at P
// seconds after the one before finds something with the probability 1 − e^(−λP), for λ
// transactions a second; those that were notified are gone by then, which leaves
// (1−ν)(1 − e^(−λP)) for a share ν of them. So there are
//
//	β = νλ + (1−ν)(1 − e^(−λP)) / P
//
// batches a second, of λ/β transactions each on average, and how many is distributed
// like Poisson without its zero. A batch that is full is followed by another fetch.
//
// The result are three lines: what looks that find a message cost beyond those that do
// not, fetches, and deletes.
func (w Workload) deliver(rate float64) [3]Line {
	if rate <= 0 {
		return [3]Line{}
	}
	poll, transactions := w.PollInterval.Seconds(), rate/w.PerTransaction
	hits := (1 - w.Notified) * -math.Expm1(-transactions*poll) / poll
	batches := w.Notified*transactions + hits
	row := w.rowBytes()
	limit := max(1, min(w.BatchSize, w.MaxBatchBytes/row))
	var fetch, remove Line // of one batch
	truncatedPoisson(transactions/batches, func(k int, p float64) {
		rows := int(math.Round(float64(k) * w.PerTransaction))
		add := func(fetches float64, n int) {
			fetch.Requests += p * fetches * units(n*row, pageBytes)
			fetch.Read += p * fetches * units(n*row, readUnitBytes)
			remove.Requests += p * fetches * math.Ceil(float64(n)/deleteRows)
		}
		add(float64(rows/limit), limit)
		add(1, rows%limit) // also of no row, behind a full one
	})
	fetch, remove = fetch.times(batches), remove.times(batches)
	remove.Write = rate * units(row, writeUnitBytes)
	return [3]Line{{Read: hits * (units(row, readUnitBytes) - 1) / 2}, fetch, remove}
}

// certainMean is from when on a Poisson variable is as good as its mean: it is a thousandth
// away from it, as a rule.
const certainMean = 1e6

// truncatedPoisson visits the likely values of a Poisson variable without its zero, of
// a mean of 1 or more, each with its probability. There are some 24,000 at most.
func truncatedPoisson(mean float64, visit func(k int, probability float64)) {
	if mean <= 1 || mean >= certainMean {
		visit(int(max(1, math.Round(mean))), 1)
		return
	}
	// The mean is m / (1 − e^(−m)), for the m of the variable with its zero.
	low, high := 0.0, mean
	for range 60 {
		m := (low + high) / 2
		if m/-math.Expm1(-m) < mean {
			low = m
		} else {
			high = m
		}
	}
	m := high
	// What is further than twelve deviations away does not count.
	reach := 12*math.Sqrt(m) + 12
	for k := max(1, int(m-reach)); k <= int(m+reach); k++ {
		factorial, _ := math.Lgamma(float64(k) + 1)
		visit(k, math.Exp(float64(k)*math.Log(m)-m-factorial)/-math.Expm1(-m))
	}
}
