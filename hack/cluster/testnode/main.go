// Command sluice-testnode is a one-node Kubernetes in one program.
//
// The components share most of their packages, so one program is linked in a fraction of the time
// and of the space that each on its own would take. The first argument says which one to be, or
// the name that the program is called by, so that a link to it named kubectl is kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and the machine may know none

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"sluice.dev/hack/testnode/controllers"
)

// Each component takes its arguments from os.Args[1:] and ends the process.
var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllers.NewCommand),
	"kube-scheduler":          run(newScheduler),
	"kube-proxy":              run(proxy.NewProxyCommand),
	"kubelet":                 run(newKubelet),
	"kubectl":                 runKubectl,
	"remove-pods":             removePods,
}

func main() {
	name := filepath.Base(os.Args[0])
	if components[name] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	component := components[name]
	if component == nil {
		names := []string{}
		for name := range components {
			names = append(names, name)
		}
		slices.Sort(names)
		fail("usage: sluice-testnode %s ARGUMENTS...", strings.Join(names, "|"))
	}
	component()
}

func run(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func newKubelet() *cobra.Command {
	return kubelet.NewKubeletCommand(context.Background())
}

func newScheduler() *cobra.Command {
	return scheduler.NewSchedulerCommand()
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(2)
}
