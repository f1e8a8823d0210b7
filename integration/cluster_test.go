//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// cluster is a Kafka cluster of the test's own, whose brokers may be stopped and
// killed. Each is a process, broker and controller in one, with a folder of its
// own, so that one that is started again has what it had.
type cluster struct {
	t     *testing.T
	nodes []*node
}

// node is one broker.
type node struct {
	*process // the last that was started
	cluster  *cluster
	number   int // from 1
	client   int // port
	control  int // port
	folder   string
}

// newCluster formats and starts a cluster of so many nodes.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{t: t}
	ports := freePorts(t, 2*nodes)
	for n := range nodes {
		c.nodes = append(c.nodes, &node{cluster: c, number: n + 1, client: ports[2*n], control: ports[2*n+1], folder: t.TempDir()})
	}
	var formats sync.WaitGroup
	for _, n := range c.nodes {
		n.write()
		formats.Go(n.format)
	}
	formats.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, n := range c.nodes {
		n.launch()
	}
	for _, n := range c.nodes {
		n.awaitReady()
	}
	return c
}

// servers are where the nodes listen for clients.
func (c *cluster) servers() servers {
	var all servers
	for _, n := range c.nodes {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", n.client))
	}
	return all
}

// freePorts are ports that nobody listens on, below those that systems hand out to
// clients: nobody takes them while a broker is down.
func freePorts(t *testing.T, count int) []int {
	t.Helper()
	const first, all = 20_000, 10_000
	var ports []int
	for len(ports) < count {
		port := first + rand.IntN(all)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer listener.Close() // all at once, so that none is chosen twice
		ports = append(ports, port)
	}
	return ports
}

// java is a command of the broker's program.
func (n *node) java(class string, args ...string) *exec.Cmd {
	jars := setting(n.cluster.t, "INTEGRATION_KAFKA", "the folder of Apache Kafka's jars: export INTEGRATION_KAFKA=$(scripts/services jars)")
	return exec.Command("java", append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlog4j2.configurationFile=" + filepath.Join(n.folder, "log4j2.xml"), "-cp", filepath.Join(jars, "*"), class}, args...)...)
}

func (n *node) properties() string { return filepath.Join(n.folder, "server.properties") }

// write makes the node's files.
func (n *node) write() {
	var voters []string
	for _, other := range n.cluster.nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", other.number, other.control))
	}
	replicas := min(3, len(voters))
	inSync := max(1, replicas-1)
	for name, content := range map[string]string{
		"server.properties": strings.Join([]string{
			"process.roles=broker,controller",
			fmt.Sprintf("node.id=%d", n.number),
			"controller.quorum.voters=" + strings.Join(voters, ","),
			fmt.Sprintf("listeners=CLIENT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", n.client, n.control),
			fmt.Sprintf("advertised.listeners=CLIENT://127.0.0.1:%d", n.client),
			"listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			"controller.listener.names=CONTROLLER",
			"inter.broker.listener.name=CLIENT",
			"log.dirs=" + filepath.Join(n.folder, "data"),
			"auto.create.topics.enable=false",
			fmt.Sprintf("default.replication.factor=%d", replicas),
			fmt.Sprintf("min.insync.replicas=%d", inSync),
			fmt.Sprintf("offsets.topic.replication.factor=%d", replicas),
			fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
			fmt.Sprintf("transaction.state.log.min.isr=%d", inSync),
		}, "\n"),
		"log4j2.xml": `<Configuration status="warn"><Appenders><Console name="console"><PatternLayout pattern="%d %p %c{1} %m%n"/>
			</Console></Appenders><Loggers><Logger name="kafka.server.KafkaRaftServer" level="info"/>
			<Root level="error"><AppenderRef ref="console"/></Root></Loggers></Configuration>`,
	} {
		if err := os.WriteFile(filepath.Join(n.folder, name), []byte(content), 0o600); err != nil {
			n.cluster.t.Fatal(err)
		}
	}
}

func (n *node) format() {
	const clusterID = "YnVja2V0YnJpZ2FkZS10ZQ" // any 16 bytes, in base64url
	if out, err := n.java("kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.properties()).CombinedOutput(); err != nil {
		n.cluster.t.Errorf("format the storage of node %d: %v\n%s", n.number, err, out)
	}
}

func (n *node) launch() {
	n.process = launch(n.cluster.t, fmt.Sprintf("broker %d", n.number), n.java("kafka.Kafka", n.properties()))
}

func (n *node) awaitReady() {
	n.cluster.t.Helper()
	n.awaitLine(0, "that it has started", func(l line) bool { return strings.Contains(l.text, "Kafka Server started") })
}

// startAgain starts a node that has ended.
func (n *node) startAgain() {
	n.cluster.t.Helper()
	n.launch()
	n.awaitReady()
}

// leave stops the node as an operator does.
func (n *node) leave() {
	n.cluster.t.Helper()
	n.signal(syscall.SIGTERM)
	n.exit()
}

// die ends the node at once.
func (n *node) die() {
	n.cluster.t.Helper()
	n.signal(syscall.SIGKILL)
	n.exit()
}
