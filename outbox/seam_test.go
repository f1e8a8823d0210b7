package outbox

import "context"

// Headers is what a writer adds to those of one message, for tests that count what it takes.
func (w *Writer) Headers(ctx context.Context, own []Header) []Header {
	return w.withTrace(own, w.traceHeaders(ctx))
}
