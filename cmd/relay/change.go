package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// This file is how commands change the table: they make a change (what it is, and the
// requests that carry it out, in order), and carryOut shows, asks and sends. It knows no
// command.

// consent is what a caller has said about changes.
type consent struct {
	yes    bool // no question is asked
	dryRun bool // nothing is sent
}

func consentArguments(c *consent) []settings.Argument {
	return []settings.Argument{
		{Name: "yes", Value: settings.Switch(&c.yes), Doc: "change it without asking"},
		{Name: "dry-run", Value: settings.Switch(&c.dryRun), Doc: "show the requests that would be sent, and send none"},
	}
}

// maxFacts is how many facts are shown before a question.
const maxFacts = 20

// change is what a command is about to do.
type change struct {
	facts    []string // lines that whoever is asked should know; never content
	question string   // without the mark: "discard row 5 of key …"
	requests []store.Request
}

// How a request of a change ended.
const (
	outcomeDone    = "done"
	outcomeAlready = "already" // it was so before
	outcomeGone    = "gone"    // there is nothing any more that it could be done to
	outcomeFailed  = "failed"
	outcomeUnknown = "unknown" // no answer came, or not for each sending: it may have been done
	outcomeNotSent = "not sent"
)

// changeDocument is the JSON of a command that changes something.
type changeDocument struct {
	Table    string            `json:"table"`
	DryRun   bool              `json:"dryRun"`
	Requests []requestDocument `json:"requests"`
}

// requestDocument is one request of a change.
type requestDocument struct {
	Request      string `json:"request"`
	Bucket       int    `json:"bucket"`
	PartitionKey string `json:"partitionKey"`
	SortKey      string `json:"sortKey"`
	Does         string `json:"does"`   // for people
	Effect       string `json:"effect"` // on the item
	Outcome      string `json:"outcome"`
}

// carryOut shows a change, asks unless it need not, and sends its requests one after
// another. It stops at the first that fails; what it did is printed then, too. Commands
// whose requests may be repeated can simply be run again.
func (a *app) carryOut(ctx context.Context, client *store.Client, c change, how consent, output format) error {
	d := changeDocument{Table: client.Schema().Table, DryRun: how.dryRun, Requests: []requestDocument{}}
	for _, r := range c.requests {
		one := describeRequest(client.Schema(), r)
		one.Outcome = outcomeNotSent
		d.Requests = append(d.Requests, one)
	}
	a.printFacts(c.facts)
	if how.dryRun || len(c.requests) == 0 {
		return a.printChange(d, output)
	}
	if !how.yes {
		if err := a.confirm(ctx, c.question); err != nil {
			return err
		}
	}
	var failure error
	for i, r := range c.requests {
		if d.Requests[i].Outcome, failure = a.send(ctx, client, r); failure != nil {
			failure = fmt.Errorf("%s: %w", d.Requests[i].Does, failure)
			if i > 0 {
				failure = fmt.Errorf("after %d of %d requests: %w", i, len(c.requests), failure)
			}
			failure = begunError{failure}
			break
		}
	}
	return errors.Join(a.printChange(d, output), failure)
}

// begunError marks what went wrong after a change had begun: what is printed of its
// requests says how far it came.
type begunError struct{ error }

func (e begunError) Unwrap() error { return e.error }

func (a *app) printFacts(facts []string) {
	for i, line := range facts {
		if i == maxFacts {
			fmt.Fprintf(a.stderr, "… and %d more\n", len(facts)-i)
			return
		}
		fmt.Fprintln(a.stderr, wrapped(line, "  ", ""))
	}
}

func (a *app) printChange(d changeDocument, output format) error {
	if output == formatJSON {
		return printJSON(a.stdout, d)
	}
	line := func(format string, args ...any) {
		fmt.Fprintln(a.stdout, shortened(fmt.Sprintf(format, args...), textColumns))
	}
	switch {
	case len(d.Requests) == 0:
		line("there is nothing to do")
	case d.DryRun:
		line("nothing is sent; these requests would be, in this order:")
	}
	for _, r := range d.Requests {
		if !d.DryRun {
			line("%s: %s", r.Outcome, r.Does)
			continue
		}
		line("%s", r.Does)
		line("  %s of %s %s", r.Request, r.PartitionKey, r.SortKey)
		line("  %s", r.Effect)
	}
	return nil
}

// errNotConfirmed ends a command whose question was not answered with yes.
var errNotConfirmed = errors.New("not confirmed: nothing was changed (--yes answers the question)")

// confirm asks on stderr and reads one line from stdin. Anything but y or yes, the end of
// the input too, is a no.
func (a *app) confirm(ctx context.Context, question string) error {
	fmt.Fprint(a.stderr, wrapped(question+"? [y/N]", "  ", "")+" ")
	line, err := interruptible(ctx, func() (string, error) {
		line, _ := bufio.NewReader(io.LimitReader(a.stdin, 1<<10)).ReadString('\n')
		return strings.ToLower(strings.TrimSpace(line)), nil
	})
	if line == "" {
		fmt.Fprintln(a.stderr)
	}
	switch {
	case err != nil:
		return err
	case line == "y" || line == "yes":
		return nil
	}
	return errNotConfirmed
}

// A request of an operator is repeated when the table is throttled, an owner's
// transaction holds the item, or no answer came: each may be sent twice. All sendings
// together take no longer than the command's --timeout.
const (
	sendAttempts = 5
	firstPause   = 100 * time.Millisecond // doubles
)

// send carries out one request and says how it ended. A request fails only when it is
// certain that nothing was changed by any of its sendings.
func (a *app) send(ctx context.Context, client *store.Client, r store.Request) (outcome string, err error) {
	limited, cancel := patiently(ctx, a.timeout)
	defer cancel()
	unanswered := false
	defer func() {
		if outcome == outcomeFailed && unanswered {
			outcome, err = outcomeUnknown, fmt.Errorf("it may have been done, for not every answer came: look at it again: %w", err)
		}
	}()
	for attempt, wait := 1, firstPause; ; attempt, wait = attempt+1, 2*wait {
		reply := client.Do(limited, r)
		// Of several attempts that the SDK made until time was up, it shows the last alone.
		unanswered = unanswered || reply.Class == store.Ambiguous || reply.Class == store.Retriable && limited.Err() != nil
		switch {
		case reply.Class == store.Done:
			return settleDone(r, reply, unanswered), nil
		case reply.Class == store.Refused:
			return settleRefusal(r, reply, unanswered)
		case attempt == sendAttempts, store.Unusable(reply.Err), limited.Err() != nil:
			return outcomeFailed, reply.Err
		}
		if err := a.pause(limited, wait); err != nil {
			return outcomeFailed, impatience(limited, fmt.Errorf("%w: %w", err, reply.Err))
		}
	}
}

// settleDone tells a lease that was handed back, or taken, before its release came.
func settleDone(r store.Request, reply store.Reply, unanswered bool) string {
	_, frees := r.(store.Release)
	if frees && !unanswered && reply.Result.(store.LeaseResult).Repeated {
		return outcomeAlready
	}
	return outcomeDone
}

// settleRefusal tells refusals that leave nothing to do from those that are failures.
func settleRefusal(r store.Request, reply store.Reply, unanswered bool) (outcome string, err error) {
	switch r.(type) {
	case store.SetAside:
		if reply.Result.(store.SetAsideResult).Existing != nil {
			return outcomeAlready, nil
		}
		return outcomeFailed, fmt.Errorf("its marker is there, and cannot be read: repair the item first: %w", reply.Err)
	case store.AskRetry:
		return outcomeGone, nil // delivered or discarded since it was read
	case store.DiscardParked:
		if unanswered {
			return outcomeDone, nil // by the sending that had no answer
		}
		return outcomeGone, fmt.Errorf("it is not there any more: %w", reply.Err)
	case store.CallOff:
		return outcomeFailed, fmt.Errorf("its retry has ended, or was asked for again, meanwhile: run the command again: %w", reply.Err)
	case store.Pause, store.Resume:
		return outcomeFailed, fmt.Errorf("somebody has paused or resumed it meanwhile: look at it again: %w", reply.Err)
	case store.PauseTopic:
		return outcomeFailed, fmt.Errorf("it was set aside, paused or retried meanwhile: look at it again: %w", reply.Err)
	case store.Release:
		return outcomeFailed, fmt.Errorf("its owner has renewed it meanwhile, and lives: %w", reply.Err)
	case store.MoveUnreadable:
		return outcomeFailed, fmt.Errorf("the row has changed, or is set aside already: look at it again: %w", reply.Err)
	default:
		return outcomeFailed, reply.Err
	}
}
