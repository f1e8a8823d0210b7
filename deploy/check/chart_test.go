package check_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const chartFolder = "../helm/relay"

// rendered is what the chart makes of values.
type rendered struct {
	deployment     *appsv1.Deployment
	config         *corev1.ConfigMap
	service        *corev1.Service
	serviceAccount *corev1.ServiceAccount
	budget         *policyv1.PodDisruptionBudget
	monitor        *serviceMonitor
}

// serviceMonitor is what the chart may use of the Prometheus operator's type.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port          string `json:"port"`
			Path          string `json:"path"`
			Interval      string `json:"interval"`
			Authorization struct {
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// valuesOf reads values of the chart's folder ci.
func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValuesFile(filepath.Join(chartFolder, "ci", name))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// templates are the rendered files by name, or why there are none.
func templates(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "orders", Namespace: "shop"}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// render takes only what Kubernetes' types know, and every kind at most once.
func render(t *testing.T, values map[string]any) rendered {
	t.Helper()
	files, err := templates(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var r rendered
	for name, content := range files {
		if strings.TrimSpace(content) == "" || filepath.Ext(name) != ".yaml" {
			continue
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(content), &kind); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, content)
		}
		var into any
		switch kind.APIVersion + " " + kind.Kind {
		case "apps/v1 Deployment":
			r.deployment, into = decoded(r.deployment)
		case "v1 ConfigMap":
			r.config, into = decoded(r.config)
		case "v1 Service":
			r.service, into = decoded(r.service)
		case "v1 ServiceAccount":
			r.serviceAccount, into = decoded(r.serviceAccount)
		case "policy/v1 PodDisruptionBudget":
			r.budget, into = decoded(r.budget)
		case "monitoring.coreos.com/v1 ServiceMonitor":
			r.monitor, into = decoded(r.monitor)
		default:
			t.Fatalf("%s: what is %+v?", name, kind)
		}
		if into == nil {
			t.Fatalf("%s: a second %s", name, kind.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(content), into); err != nil {
			t.Errorf("%s: %v\n%s", name, err, content)
		}
	}
	return r
}

// decoded is a new object to decode into, none when there is one already.
func decoded[T any](before *T) (made *T, into any) {
	if before != nil {
		return before, nil
	}
	made = new(T)
	return made, made
}

func TestTheLinterIsContent(t *testing.T) {
	for _, name := range []string{"least-values.yaml", "all-values.yaml"} {
		for _, message := range lint.AllWithKubeVersion(chartFolder, valuesOf(t, name), "shop", &chartutil.KubeVersion{Version: "v1.33.0", Major: "1", Minor: "33"}).Messages {
			// An icon is no matter of ours.
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// A relay in a cluster has no right that it does not use, whatever the values are.
func TestAPodHasNoRightThatItDoesNotUse(t *testing.T) {
	for _, name := range []string{"least-values.yaml", "all-values.yaml"} {
		pod := render(t, valuesOf(t, name)).deployment.Spec.Template.Spec
		container := pod.Containers[0]
		for what, holds := range map[string]bool{
			"runs as root":                pod.SecurityContext != nil && *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
			"has no seccomp profile":      pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"may write its root":          *container.SecurityContext.ReadOnlyRootFilesystem,
			"may gain rights":             !*container.SecurityContext.AllowPrivilegeEscalation,
			"has capabilities":            len(container.SecurityContext.Capabilities.Drop) == 1 && container.SecurityContext.Capabilities.Drop[0] == "ALL" && container.SecurityContext.Capabilities.Add == nil,
			"has a token of the cluster":  !*pod.AutomountServiceAccountToken,
			"has variables of services":   !*pod.EnableServiceLinks,
			"may take all memory":         !container.Resources.Limits.Memory().IsZero(),
			"is on the host's network":    !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
			"may write settings, secrets": !strings.Contains(mountsOf(container), "rw"),
		} {
			if !holds {
				t.Errorf("%s: the relay %s", name, what)
			}
		}
	}
}

func mountsOf(c corev1.Container) string {
	var text strings.Builder
	for _, m := range c.VolumeMounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		text.WriteString(m.MountPath + ":" + mode + " ")
	}
	return text.String()
}

// Kubernetes must not kill a relay that still drains: the next owner of its buckets would
// wait for the leases to lapse.
func TestAPodMayDrainToItsEnd(t *testing.T) {
	for name, want := range map[string]time.Duration{"least-values.yaml": 25 * time.Second, "all-values.yaml": time.Minute} {
		r := render(t, valuesOf(t, name))
		grace := time.Duration(*r.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		text, _ := settingsOf(t, r)["shutdown-timeout"].(string)
		if timeout, err := time.ParseDuration(text); err != nil || timeout != want || grace < want+10*time.Second {
			t.Errorf("%s: it drains for %q and is killed after %v", name, text, grace)
		}
	}
}

// settingsOf is the file of --config.
func settingsOf(t *testing.T, r rendered) map[string]any {
	t.Helper()
	var settings map[string]any
	if err := yaml.UnmarshalStrict([]byte(r.config.Data["relay.yaml"]), &settings); err != nil {
		t.Fatalf("%v\n%s", err, r.config.Data["relay.yaml"])
	}
	return settings
}

// Probes, scrapes and the relay speak of one port, which others than the pod itself can
// reach, and a scrape brings the token when one is asked for.
func TestTheAdminAddressIsReached(t *testing.T) {
	for name, address := range map[string]string{"least-values.yaml": ":9464", "all-values.yaml": ":8080"} {
		r := render(t, valuesOf(t, name))
		container := r.deployment.Spec.Template.Spec.Containers[0]
		port := container.Ports[0]
		if settingsOf(t, r)["admin-addr"] != address || r.service.Spec.Ports[0].TargetPort.String() != port.Name || address != fmt.Sprintf(":%d", port.ContainerPort) {
			t.Errorf("%s: admin-addr %v, container %+v, service %+v", name, settingsOf(t, r)["admin-addr"], port, r.service.Spec.Ports)
		}
		for path, probe := range map[string]*corev1.Probe{"/livez": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
			if probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != port.Name {
				t.Errorf("%s: %s is probed at %+v", name, path, probe.HTTPGet)
			}
		}
	}
	r := render(t, valuesOf(t, "all-values.yaml"))
	mounts := mountsOf(r.deployment.Spec.Template.Spec.Containers[0])
	token := settingsOf(t, r)["admin-token-file"]
	if token != "/etc/relay/admin/token" || !strings.Contains(mounts, "/etc/relay/admin:ro") {
		t.Errorf("the token %v is not in %s", token, mounts)
	}
	endpoint := r.monitor.Spec.Endpoints[0]
	if endpoint.Authorization.Credentials.Name != "relay-admin" || endpoint.Authorization.Credentials.Key != "token" || endpoint.Port != r.service.Spec.Ports[0].Name {
		t.Errorf("the scrape: %+v", endpoint)
	}
}

// All that selects pods selects those of the deployment, and none of another release.
func TestSelectorsSelectTheRelays(t *testing.T) {
	r := render(t, valuesOf(t, "all-values.yaml"))
	pods := labels.Set(r.deployment.Spec.Template.Labels)
	selectors := map[string]labels.Selector{"service": labels.SelectorFromSet(r.service.Spec.Selector)}
	for name, s := range map[string]*metav1.LabelSelector{
		"deployment": r.deployment.Spec.Selector, "budget": r.budget.Spec.Selector,
		"hosts": r.deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector,
		"zones": r.deployment.Spec.Template.Spec.TopologySpreadConstraints[1].LabelSelector,
	} {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		selectors[name] = selector
	}
	other := labels.Merge(pods, labels.Set{"app.kubernetes.io/instance": "bills"})
	for name, s := range selectors {
		if !s.Matches(pods) || s.Matches(other) {
			t.Errorf("%s selects %v", name, s)
		}
	}
	monitored, err := metav1.LabelSelectorAsSelector(&r.monitor.Spec.Selector)
	if err != nil || !monitored.Matches(labels.Set(r.service.Labels)) {
		t.Errorf("the monitor selects %v, %v", monitored, err)
	}
	account := r.deployment.Spec.Template.Spec.ServiceAccountName
	if account != r.serviceAccount.Name || r.serviceAccount.Annotations["eks.amazonaws.com/role-arn"] == "" {
		t.Errorf("the account is %s, there is %+v", account, r.serviceAccount.ObjectMeta)
	}
}

// The file of settings is golden here, and taken by relay run's own loader in a test of
// cmd/relay: a large number must not become 1e+06 on its way.
func TestTheFileOfSettings(t *testing.T) {
	for _, name := range []string{"least", "all"} {
		got := render(t, valuesOf(t, name+"-values.yaml")).config.Data["relay.yaml"]
		path := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; got:\n%s", path, got)
		}
	}
}

// A change of settings restarts the pods, which read them once.
func TestAChangeOfSettingsRollsThePods(t *testing.T) {
	checksum := func(change func(map[string]any)) string {
		values := valuesOf(t, "least-values.yaml")
		change(values)
		return render(t, values).deployment.Spec.Template.Annotations["checksum/settings"]
	}
	before := checksum(func(map[string]any) {})
	after := checksum(func(v map[string]any) { v["settings"].(map[string]any)["batch-size"] = 100 })
	if before == "" || before == after {
		t.Errorf("before %s, after %s", before, after)
	}
}

// What the chart does not know, and what it sets itself, is refused before anything is
// installed.
func TestWrongValuesAreRefused(t *testing.T) {
	setting := func(name string, value any) map[string]any {
		return map[string]any{"settings": map[string]any{"table": "t", "brokers": "b:9092", name: value}}
	}
	for name, values := range map[string]map[string]any{
		"no table":             {"settings": map[string]any{"brokers": "b:9092"}},
		"nothing":              {},
		"an unknown setting":   setting("bucket-cuont", 8),
		"one id for all":       setting("relay-id", "one"),
		"the chart's address":  setting("admin-addr", "off"),
		"an unknown value":     {"settings": setting("mode", "fenced")["settings"], "replicas": 2},
		"a digest without sum": {"settings": setting("mode", "fenced")["settings"], "image": map[string]any{"digest": "latest"}},
	} {
		if _, err := templates(t, values); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := templates(t, setting("mode", "fenced")); err != nil {
		t.Errorf("right values: %v", err)
	}
}

// Every template of the folder is one that the tests above have looked at.
func TestNoTemplateIsForgotten(t *testing.T) {
	files, err := templates(t, valuesOf(t, "all-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS(filepath.Join(chartFolder, "templates")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" && strings.TrimSpace(files["relay/templates/"+path]) == "" {
			t.Errorf("%s renders to nothing though all values are given", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
