package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// authority is a certificate authority whose certificates and keys are in files.
type authority struct {
	t         *testing.T
	directory string
	signer    tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, directory: t.TempDir()}
	a.signer = a.issue("ca", nil)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.directory, name) }

// issue makes a certificate for this host, NAME.pem, and its key, NAME.key.
func (a *authority) issue(name string, parent *tls.Certificate) tls.Certificate {
	a.t.Helper()
	must := func(err error) {
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signing, by := key, template
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		signing, by = parent.PrivateKey.(*ecdsa.PrivateKey), parent.Leaf
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, signing)
	must(err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	must(os.WriteFile(a.path(name+".pem"), certificatePEM, 0o600))
	must(os.WriteFile(a.path(name+".key"), keyPEM, 0o600))
	pair, err := tls.X509KeyPair(certificatePEM, keyPEM)
	must(err)
	return pair
}

// Brokers that want TLS, a certificate of the client's and a password are reached with
// librdkafka's properties, all secrets read from files; and nothing is sent to brokers
// of another authority.
func TestRunReachesBrokersWithTLSAndSASL(t *testing.T) {
	ca := newAuthority(t)
	server := ca.issue("server", &ca.signer)
	ca.issue("client", &ca.signer)
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.signer.Leaf)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "placed"),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "relay", canaryPassword),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	if err := os.WriteFile(ca.path("password"), []byte(canaryPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(until, authority string) (*console, string) {
		c := newConsole(t)
		c.run("message", "enqueue", "--table", "orders", "--topic", "placed", "--key", "k")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		stderr := &stderrLines{on: func(event string) {
			if event == until {
				cancel()
			}
		}}
		a := &app{
			args: []string{"run", "--table", "orders", "--brokers", strings.Join(cluster.ListenAddrs(), ","), "--admin-addr", "off",
				"--poll-interval", "50ms", "--log-level", "trace", "--log-format", "json",
				"--kafka", "security.protocol=SASL_SSL", "--kafka", "sasl.mechanisms=SCRAM-SHA-512", "--kafka", "sasl.username=relay",
				"--kafka", "ssl.ca.location=" + authority, "--kafka", "ssl.certificate.location=" + ca.path("client.pem")},
			environ: []string{"RELAY_KAFKA_SASL_PASSWORD_FILE=" + ca.path("password"), "RELAY_KAFKA_SSL_KEY_PEM_FILE=" + ca.path("client.key")},
			stdout:  io.Discard, stderr: stderr, now: time.Now,
			dial: func(context.Context, *settings.Settings) (clients, error) {
				return clients{messages: c.table, coordination: c.table, tables: c.table, region: "nowhere"}, nil
			},
		}
		if code := a.execute(ctx); code != exitDone {
			t.Errorf("exit %d:\n%s", code, stderr.String())
		}
		mustNotLeak(t, "the log", stderr.String())
		return c, stderr.String()
	}
	if c, log := run("batch.removed", ca.path("ca.pem")); pendingRows(c.table, schema) != 0 {
		t.Errorf("the message is still there:\n%s", log)
	}
	stranger := newAuthority(t)
	if c, log := run("broker.unreachable", stranger.path("ca.pem")); pendingRows(c.table, schema) != 1 {
		t.Errorf("the message went to brokers that nobody vouches for:\n%s", log)
	}
}
