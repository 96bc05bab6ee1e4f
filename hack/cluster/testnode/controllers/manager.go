// Package controllers is a controller manager with the controllers that a one-node cluster needs.
//
// The one of Kubernetes has twice as many: for clouds, volumes of a network, autoscaling, tokens of
// kubeadm and more. Nothing of that exists here, and all of it would have to be compiled.
package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	// serverPatience is how long the API server may take to start beside us.
	serverPatience = time.Minute
	// discoveryPeriod is how often new kinds are looked for.
	discoveryPeriod = 30 * time.Second
	resyncPeriod    = 12 * time.Hour
)

// settings are the command's flags.
type settings struct {
	kubeconfig, keyFile, caFile string
	qps                         float32
	burst                       int
}

// manager is what controllers share.
type manager struct {
	settings
	// root acts as the manager itself, and each client of a controller as its service account.
	root, clients clientbuilder.ControllerClientBuilder
	// typed has the kinds of Kubernetes, and all has those of CRDs too, by their metadata.
	typed   informers.SharedInformerFactory
	all     informerfactory.InformerFactory
	mapper  meta.ResettableRESTMapper
	graph   *garbagecollector.GraphBuilder
	started chan struct{}
}

// NewCommand returns the command that runs the controllers for ever.
func NewCommand() *cobra.Command {
	var chosen settings
	command := &cobra.Command{
		Use:          "kube-controller-manager",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			return serve(context.Background(), chosen)
		},
	}
	flags := command.Flags()
	flags.StringVar(&chosen.kubeconfig, "kubeconfig", "", "access to the API server")
	flags.StringVar(&chosen.keyFile, "service-account-private-key-file", "", "signs tokens in Secrets")
	flags.StringVar(&chosen.caFile, "root-ca-file", "", "certificate that pods get, for the API server")
	flags.Float32Var(&chosen.qps, "kube-api-qps", 20, "requests a second of each controller")
	flags.IntVar(&chosen.burst, "kube-api-burst", 30, "requests at once of each controller")
	return command
}

// serve starts all controllers, and returns only if one does not start.
func serve(ctx context.Context, chosen settings) error {
	access, err := clientcmd.BuildConfigFromFlags("", chosen.kubeconfig)
	if err != nil {
		return err
	}
	access.QPS, access.Burst = chosen.qps, chosen.burst
	access.ContentType = "application/vnd.kubernetes.protobuf"
	rest.AddUserAgent(access, "kube-controller-manager")
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	if err := awaitServer(ctx, client); err != nil {
		return err
	}
	shared, err := newManager(ctx, chosen, access, client)
	if err != nil {
		return err
	}
	for name, start := range table {
		named := klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), name))
		if err := start(named, shared); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	shared.typed.Start(ctx.Done())
	shared.all.Start(ctx.Done())
	close(shared.started)
	<-ctx.Done()
	return nil
}

func newManager(
	ctx context.Context, chosen settings, access *rest.Config, client kubernetes.Interface,
) (*manager, error) {
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: access}
	objects, err := metadata.NewForConfig(root.ConfigOrDie("metadata-informers"))
	if err != nil {
		return nil, err
	}
	typed := informers.NewSharedInformerFactoryWithOptions(
		root.ClientOrDie("shared-informers"), resync(), informers.WithTransform(withoutManagers))
	others := metadatainformer.NewSharedInformerFactoryWithOptions(
		objects, resync(), metadatainformer.WithTransform(withoutManagers))
	discovered := root.DiscoveryClientOrDie("controller-discovery")
	made := &manager{
		settings: chosen,
		root:     root,
		clients: clientbuilder.NewDynamicClientBuilder(
			rest.AnonymousClientConfig(access), client.CoreV1(), metav1.NamespaceSystem),
		typed:   typed,
		all:     informerfactory.NewInformerFactory(typed, others),
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered)),
		started: make(chan struct{}),
	}
	go wait.UntilWithContext(ctx, func(context.Context) { made.mapper.Reset() }, discoveryPeriod)
	ignored := map[schema.GroupResource]struct{}{}
	for kind := range garbagecollector.DefaultIgnoredResources() {
		ignored[kind] = struct{}{}
	}
	made.graph = garbagecollector.NewDependencyGraphBuilder(
		ctx, objects, made.mapper, ignored, made.all, made.started)
	return made, nil
}

// awaitServer waits until the API server has started, with the roles of controllers.
func awaitServer(ctx context.Context, client kubernetes.Interface) error {
	ready := func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).Error() == nil, nil
	}
	return wait.PollUntilContextTimeout(ctx, time.Second/5, serverPatience, true, ready)
}

// withoutManagers drops who has set which field: no controller reads it, and it is much of an object.
func withoutManagers(object any) (any, error) {
	if fields, err := meta.Accessor(object); err == nil {
		fields.SetManagedFields(nil)
	}
	return object, nil
}

// resync returns a period that differs from call to call, so that not all is done at once.
func resync() time.Duration {
	return resyncPeriod + rand.N(resyncPeriod)
}
