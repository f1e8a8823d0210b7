package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how soon after the first a further signal is still the same
// wish: timeout(1) and others signal the process and then its whole group.
const sameSignal = 50 * time.Millisecond

// untilSignalled is a context that ends with the first SIGINT or SIGTERM, after
// which a command finishes what it must. The second ends the process at once,
// with the status that shells give to a signal's victims: 130 or 143. Stop gives
// both signals their usual meaning back.
func untilSignalled(parent context.Context, exit func(code int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go watchSignals(signals, time.Now, cancel, exit)
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// watchSignals cancels at the first signal and exits at the second. It returns
// when signals is closed.
func watchSignals(signals <-chan os.Signal, now func() time.Time, cancel context.CancelFunc, exit func(code int)) {
	if _, open := <-signals; !open {
		return
	}
	first := now()
	cancel()
	for s := range signals {
		if now().Sub(first) >= sameSignal {
			exit(signalStatus(s))
			return
		}
	}
}

func signalStatus(s os.Signal) int {
	const bySignal = 128
	if number, ok := s.(syscall.Signal); ok {
		return bySignal + int(number)
	}
	return exitFailed
}
