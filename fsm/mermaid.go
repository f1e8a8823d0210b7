package fsm

import (
	"fmt"
	"strings"
)

// Mermaid is the diagram of both machines in Mermaid's stateDiagram-v2: the
// batch's inside the bucket's state Owned. The same tables give the same text.
func Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %s\n", Claiming)
	fmt.Fprintf(&b, "    state %s {\n", Owned)
	fmt.Fprintf(&b, "        [*] --> %s\n", Fetching)
	arrows(&b, "        ", BatchTable())
	fmt.Fprintf(&b, "        %s --> [*]\n    }\n", Removed)
	arrows(&b, "    ", BucketTable())
	for _, end := range []State{Released, Lost} {
		fmt.Fprintf(&b, "    %s --> [*]\n", end)
	}
	return b.String()
}

func arrows(b *strings.Builder, indent string, table []Row) {
	for _, row := range table {
		for _, from := range row.From {
			fmt.Fprintf(b, "%s%s --> %s: %s\n", indent, from, row.To, row.Event)
		}
	}
}
