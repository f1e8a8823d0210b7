package main

import (
	"context"
	"os"
)

func main() {
	ctx, stop := untilSignalled(context.Background(), os.Exit)
	code := execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
