// Package bucket is the actor of one owned bucket: it alone writes the bucket's
// lease, and it moves the bucket's rows: claim, fetch, probe gaps, publish,
// delete, release (protocol.md sections 3 and 5).
//
// One actor stands for one tenure. It begins with a Claim or a Resume, is told
// of every coordination round by Attend or Carry, and ends itself once the
// lease is released or lost. The coordinator learns of it by Quiesced, Mismatched,
// Ended and Failed.
package bucket
