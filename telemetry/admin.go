package telemetry

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// largestRequest is how many bytes of a request's body are read at most: no
// request to the admin address has one.
const largestRequest = 1 << 10

// AdminOptions are what an admin address serves.
type AdminOptions struct {
	// Status is asked for each request; required, and safe for concurrent use.
	Status func() Status
	// Now is the clock that ages on the page are taken by; nil: time.Now.
	Now func() time.Time
	// Metrics answers /metrics; nil: not found. See Export.Handler.
	Metrics http.Handler
	// Token must come with each request but those of probes, as a bearer token, or
	// as the password of basic authentication, which browsers can ask for; empty:
	// nobody is asked.
	Token string
	// Profiles serves /debug/pprof. Profiles show what is in memory.
	Profiles bool
}

// NewAdmin is the handler of an admin address: /livez and /readyz for probes, open to
// all; / as a page for people, /status as JSON, and /metrics. It only reads, answers GET
// and HEAD alone, and nothing that it shows has a record's key, value or headers, or a
// secret. Serve it with ListenAdmin.
func NewAdmin(o AdminOptions) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	page := newPage()
	closed := http.NewServeMux()
	closed.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { page.serve(w, o.Status(), o.Now()) })
	closed.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, o.Status()) })
	if o.Metrics != nil {
		closed.Handle("/metrics", o.Metrics)
	}
	if o.Profiles {
		addProfiles(closed)
	}
	open := http.NewServeMux()
	open.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	open.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { writeReadiness(w, o.Status()) })
	open.Handle("/", withToken(o.Token, closed))
	return guarded(http.MaxBytesHandler(open, largestRequest))
}

// addProfiles serves pprof's pages, which are else only in the process's own
// default mux.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

// guarded refuses what would change something, and what a browser was tricked into, and
// tells browsers to do with the answers only what they are for. A page of another site may
// point a name of its own at a loopback address (DNS rebinding), so that whoever asks there
// must have asked for that address, and not for a name.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			writeText(w, http.StatusMethodNotAllowed, "only GET and HEAD")
			return
		}
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local) && !namesAddress(r.Host) {
			writeText(w, http.StatusMisdirectedRequest, "ask for the address, or for localhost")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// namesAddress tells whether a Host header has an address, or localhost.
func namesAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// withToken lets only requests with the token through. Digests are compared, so
// that neither the time it takes nor the length says anything of it.
func withToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found {
			_, given, _ = r.BasicAuth()
		}
		if got := sha256.Sum256([]byte(given)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Add("WWW-Authenticate", `Bearer realm="relay"`)
			w.Header().Add("WWW-Authenticate", `Basic realm="relay", charset="UTF-8"`)
			writeText(w, http.StatusUnauthorized, "a token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeReadiness(w http.ResponseWriter, s Status) {
	code := http.StatusServiceUnavailable
	if s.State == ready {
		code = http.StatusOK
	}
	writeText(w, code, s.readiness())
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // who asked has gone: nobody is left to tell
}

func writeStatus(w http.ResponseWriter, s Status) {
	if s.Buckets == nil {
		s.Buckets = []BucketStatus{}
	}
	if s.Troubles == nil {
		s.Troubles = []json.RawMessage{}
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // as above; the status itself can always be encoded
}
