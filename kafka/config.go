package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is how to reach a Kafka cluster.
type Config struct {
	// Brokers are the bootstrap servers, each "host:port", or "host" for port
	// 9092. At least one.
	Brokers []string
	// Properties are librdkafka's own, by librdkafka's names or aliases, for
	// what the relay has no setting of its own: security, compression, linger.ms,
	// timeouts of sockets. Those that carry the delivery promise are refused.
	//
	// message.max.bytes and batch.size are upper bounds: a producer for topics
	// with a smaller limit uses the smaller value.
	Properties map[string]string
	// DescribeTimeout bounds the answer to one Describe. Default: 10 s.
	DescribeTimeout time.Duration
	// LimitTimeout bounds the part of it that asks for the topic's
	// max.message.bytes, which needs the permission to describe configurations;
	// without an answer the limit stays unknown. Default: 2 s. Negative: it is not
	// asked for.
	LimitTimeout time.Duration
}

const (
	defaultDescribeTimeout = 10 * time.Second
	defaultLimitTimeout    = 2 * time.Second
)

func (c Config) withDefaults() Config {
	c.DescribeTimeout = cmp.Or(c.DescribeTimeout, defaultDescribeTimeout)
	c.LimitTimeout = cmp.Or(c.LimitTimeout, defaultLimitTimeout)
	return c
}

// Validate joins every fault of the configuration, each with its setting and
// value; the value of a secret property is never in the error. Properties are
// checked by librdkafka itself, on clients without brokers: nothing is sent. It
// takes about 0.1 s when there are properties.
func (c Config) Validate() error {
	faults := c.brokerFaults()
	if c.DescribeTimeout < 0 {
		faults = append(faults, fmt.Errorf("describe timeout %v: must be positive", c.DescribeTimeout))
	}
	refused, others := refusedProperties(c.Properties)
	faults = append(faults, refused...)
	return errors.Join(append(faults, tryProperties(others)...)...)
}

func (c Config) brokerFaults() []error {
	if len(c.Brokers) == 0 {
		return []error{errors.New("brokers: at least one is required, as host:port")}
	}
	var faults []error
	for i, broker := range c.Brokers {
		if strings.Contains(broker, "@") { // it may be a password in front of it
			faults = append(faults, fmt.Errorf("brokers: %s: has credentials, which are properties: sasl.username, sasl.password", Redacted))
		} else if reason := brokerFault(broker); reason != "" {
			faults = append(faults, fmt.Errorf("brokers: %q: %s", broker, reason))
		} else if slices.Contains(c.Brokers[:i], broker) {
			faults = append(faults, fmt.Errorf("brokers: %q: named twice", broker))
		}
	}
	return faults
}

// brokerFault says what is wrong with one "host", "host:port" or
// "protocol://host:port"; "" when nothing is.
func brokerFault(broker string) string {
	if broker == "" {
		return "empty"
	}
	if strings.ContainsFunc(broker, func(r rune) bool { return r <= ' ' || r == ',' || r == 0x7f }) {
		return "has blanks, commas or control characters"
	}
	address := broker
	if protocol, after, found := strings.Cut(broker, "://"); found {
		if !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, strings.ToUpper(protocol)) {
			return "has no protocol of Kafka's: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
		}
		address = after
	}
	host, port := address, "9092"
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "is not host:port"
		}
	}
	if host == "" {
		return "has no host"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "its port is not a number from 1 to 65535"
	}
	return ""
}
