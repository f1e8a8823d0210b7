package telemetry_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/bucketbrigade/relay/telemetry"
)

var screenshots = flag.String("screenshots", "", "folder in which the pictures of the page are left")

// patience bounds a browser that would else be waited for without end.
const patience = 3 * time.Minute

// browser is a real one that has the page open.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu         sync.Mutex
	complaints []string // errors and violations that the page has caused; guarded by mu
	asked      []string // addresses that it asked; guarded by mu
}

// open starts a browser with a window of a size and opens the page; a machine without
// Chromium skips the test.
func open(t *testing.T, s served, width, height int64, first ...chromedp.Action[chromedp.Void]) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium on this machine")
	}
	limited, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	allocated, end := chromedp.NewExecAllocator(limited, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx, url: "http://" + s.server.Address() + "/"}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	watching := []chromedp.Action[chromedp.Void]{
		call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}),
		chromedp.EmulateViewport(width, height),
	}
	b.do(append(append(watching, first...), chromedp.Navigate(b.url))...)
	return b
}

// call is a command of the browser's as an action.
func call[P, R any](command cdp.Command[P, R], parameters P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, command, parameters)
		return err
	})
}

func (b *browser) listen(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprint(e.ExceptionDetails.Text))
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// result is what an action found.
func result[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	found, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// text is what a person reads on the page.
func (b *browser) text() string {
	b.t.Helper()
	return result(b, chromedp.Text(chromedp.CSS("body")))
}

// picture is what a person sees; it must show something, and fit the window's width.
func (b *browser) picture(name string, width int) {
	b.t.Helper()
	content := result(b, chromedp.FullScreenshot(100))
	if *screenshots != "" {
		if err := os.WriteFile(filepath.Join(*screenshots, name), content, 0o644); err != nil {
			b.t.Error(err)
		}
	}
	shot, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	if got := shot.Bounds().Dx(); got != width {
		b.t.Errorf("%s is %d pixels wide, not %d: the page has to be moved sideways", name, got, width)
	}
	if n := len(colours(shot)); n < 10 {
		b.t.Errorf("%s has %d colours only", name, n)
	}
}

func colours(shot image.Image) map[color.Color]int {
	count := map[color.Color]int{}
	for y := shot.Bounds().Min.Y; y < shot.Bounds().Max.Y; y++ {
		for x := shot.Bounds().Min.X; x < shot.Bounds().Max.X; x++ {
			count[shot.At(x, y)]++
		}
	}
	return count
}

// well demands that the page caused no error, broke no rule of its policy, and asked
// nobody but the relay.
func (b *browser) well() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("the browser complains: %q", b.complaints)
	}
	for _, url := range b.asked {
		if url != b.url && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page asked %s", url)
		}
	}
}

// wanted is what the page of a relay in trouble must say.
var wanted = []string{"relay-a", "ready", "publishing", "1 owned", "1 blocked", "rejected: message too large", "≥ 10012",
	"1 min 30 s", "Last troubles", "bucket.blocked", "relay-c", "silent", "0, 5–6", "paused by an operator 5"}

func wantText(t *testing.T, text string) {
	t.Helper()
	for _, part := range wanted {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not say %q; it says\n%s", part, text)
		}
	}
}

// With scripts, the page shows the relay, and goes on showing it as it changes, by
// itself; when the relay does not answer any more, it says so instead of showing old
// figures as if they were new.
func TestPageInABrowser(t *testing.T) {
	var state atomic.Value
	state.Store("ready")
	s := serve(t, telemetry.AdminOptions{
		Status: func() telemetry.Status {
			status := troubledStatus()
			status.State = state.Load().(string)
			return status
		},
		Now: func() time.Time { return noon.Add(time.Hour) },
	})
	b := open(t, s, 1200, 800)
	wantText(t, b.text())
	b.picture("page.png", 1200)

	state.Store("stopping")
	result(b, untilTitle("stopping"))
	if text := b.text(); !strings.Contains(text, "stopping") || !strings.Contains(text, "live") {
		t.Errorf("after a change, the page says\n%s", text)
	}
	b.well()
	if err := s.server.Close(); err != nil {
		t.Error(err)
	}
	result(b, untilTitle("no answer"))
	if text := b.text(); !strings.Contains(text, "no answer since") {
		t.Errorf("without a relay, the page says\n%s", text)
	}
}

// untilTitle waits until the page's title has a text.
func untilTitle(text string) chromedp.Action[bool] {
	return chromedp.Evaluate[bool](fmt.Sprintf(`new Promise(done => {
		const look = () => { if (document.title.includes(%q)) done(true) };
		new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true});
		look();
	})`, text), chromedp.EvalAwaitPromise)
}

// On a phone nothing has to be moved sideways, however long a name is.
func TestPageOnAPhone(t *testing.T) {
	s := serve(t, telemetry.AdminOptions{
		Status: func() telemetry.Status {
			status := troubledStatus()
			status.Relay = "relay-" + strings.Repeat("long", 20)
			return status
		},
		Now: func() time.Time { return noon.Add(time.Hour) },
	})
	b := open(t, s, 360, 740)
	b.picture("phone.png", 360)
	b.well()
}

// Without scripts the page says the same, and loads itself again.
func TestPageWithoutScripts(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, telemetry.AdminOptions{
		Status: func() telemetry.Status { asked.Add(1); return troubledStatus() },
		Now:    func() time.Time { return noon.Add(time.Hour) },
	})
	b := open(t, s, 1200, 800, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	wantText(t, b.text())
	b.picture("without_scripts.png", 1200)
	b.well()
	if got := s.want(http.StatusOK, "GET", "/"); !strings.Contains(got.body, `<noscript><meta http-equiv="refresh" content="10"></noscript>`) {
		t.Error("it does not load itself again")
	}
}
