package cost

// TruncatedPoisson lets tests see how much is reckoned.
var TruncatedPoisson = truncatedPoisson
