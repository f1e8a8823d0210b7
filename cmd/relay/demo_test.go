package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestDemoVerifiesWhatItDid(t *testing.T) {
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code := execute(ctx, []string{"demo", "--messages", "300", "--keys", "7", "--output", "json"}, nil, strings.NewReader(""), &stdout, &stderr)
	var d demoDocument
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout.String(), stderr.String())
	}
	if d.Enqueued != 300 || d.Delivered != 300 || d.Lost != 0 || d.Keys != 7 || !d.OrderVerified || d.Pending != 0 || d.Seconds <= 0 {
		t.Errorf("%+v", d)
	}
	for _, want := range []string{"stopping relay-1", "relay-1 has stopped", "relay-3 has taken its place", "all 300 messages are written"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the progress does not say %q:\n%s", want, stderr.String())
		}
	}
}

// onText cancels when a text was written, after it was looked at.
type onText struct {
	bytes.Buffer
	text string
	then func(all string)
}

func (w *onText) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(string(p), w.text) {
		w.then(w.String())
	}
	return n, err
}

// What the demo leaves running can be looked at: each relay has an admin address.
func TestDemoKeepsRunningAndCanBeLookedAt(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var answers []string
	stdout := &onText{text: "kafka-console-consumer", then: func(all string) {
		for _, m := range regexp.MustCompile(`http://(\S+)/status`).FindAllStringSubmatch(all, -1) {
			_, body := (&watched{t: t, address: m[1]}).ask("/status", "")
			answers = append(answers, body)
		}
		cancel()
	}}
	code := execute(ctx, []string{"demo", "--messages", "100", "--keep"}, nil, strings.NewReader(""), stdout, io.Discard)
	if code != exitDone || len(answers) != 2 || !strings.Contains(answers[0], `"relay-2"`) || !strings.Contains(answers[1], `"relay-3"`) {
		t.Errorf("exit %d, answers %v\n%s", code, answers, stdout.String())
	}
}

func TestDemoWordsItsSummary(t *testing.T) {
	messages, records := delivery()
	for name, v := range map[string]verdict{
		"demo_sound.txt":    verify(messages, append(records[:1:1], records...)),
		"demo_mismatch.txt": verify(messages, append(records[2:3:3], records[1:]...)),
	} {
		var out strings.Builder
		c := &demo{app: &app{stdout: &out, stderr: io.Discard, now: func() time.Time { return noon }}, output: formatText}
		c.began = noon.Add(-4200 * time.Millisecond)
		if err := c.summarize(v, 1); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}
