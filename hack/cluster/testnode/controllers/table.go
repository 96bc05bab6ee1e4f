package controllers

import (
	"context"
	"os"
	"time"

	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	quotas "k8s.io/kubernetes/pkg/quota/v1/install"
	tokens "k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"

	corev1 "k8s.io/api/core/v1"
)

// Numbers are those of Kubernetes' own manager unless said otherwise.
const (
	workers           = 5
	manyWorkers       = 20
	finishedPods      = 12500
	endpointsOfSlice  = 100
	endpointsOfMirror = 1000
	nodeLook          = 5 * time.Second
	nodeStart         = time.Minute
	nodeGrace         = 50 * time.Second
	evictionRate      = 0.1
	slowEvictionRate  = 0.01
	largeCluster      = 50
	unhealthyShare    = 0.55
	bindPeriod        = 15 * time.Second
	quotaPeriod       = 5 * time.Minute
	namespacePeriod   = 5 * time.Minute
	recycleSeconds    = 60
	recycleStep       = 30
)

// table has a function for each controller, which starts it.
var table = map[string]func(context.Context, *manager) error{
	"certificate publisher": startPublisher,
	"cluster roles":         startClusterRoles,
	"cron jobs":             startCronJobs,
	"daemon sets":           startDaemonSets,
	"deployments":           startDeployments,
	"disruption budgets":    startDisruption,
	"endpoints":             startEndpoints,
	"ephemeral volumes":     startEphemeralVolumes,
	"garbage collector":     startCollector,
	"jobs":                  startJobs,
	"namespaces":            startNamespaces,
	"nodes":                 startNodes,
	"pod garbage collector": startPodCollector,
	"quotas":                startQuotas,
	"replica sets":          startReplicaSets,
	"service accounts":      startServiceAccounts,
	"stateful sets":         startStatefulSets,
	"time to live":          startTimeToLive,
	"tokens":                startTokens,
	"volumes":               startVolumes,
}

func startPublisher(ctx context.Context, m *manager) error {
	certificate, err := os.ReadFile(m.caFile)
	if err != nil {
		return err
	}
	core := m.typed.Core().V1()
	started, err := rootcacertpublisher.NewPublisher(
		core.ConfigMaps(), core.Namespaces(), m.clients.ClientOrDie("root-ca-cert-publisher"), certificate)
	if err == nil {
		go started.Run(ctx, 1)
	}
	return err
}

func startClusterRoles(ctx context.Context, m *manager) error {
	client := m.clients.ClientOrDie("clusterrole-aggregation-controller")
	roles := m.typed.Rbac().V1().ClusterRoles()
	go clusterroleaggregation.NewClusterRoleAggregation(roles, client.RbacV1()).Run(ctx, workers)
	return nil
}

func startCronJobs(ctx context.Context, m *manager) error {
	batch := m.typed.Batch().V1()
	started, err := cronjob.NewControllerV2(
		ctx, batch.Jobs(), batch.CronJobs(), m.clients.ClientOrDie("cronjob-controller"))
	if err == nil {
		go started.Run(ctx, workers)
	}
	return err
}

func startDaemonSets(ctx context.Context, m *manager) error {
	apps, core := m.typed.Apps().V1(), m.typed.Core().V1()
	started, err := daemon.NewDaemonSetsController(
		ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		m.clients.ClientOrDie("daemon-set-controller"),
		flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err == nil {
		go started.Run(ctx, 2)
	}
	return err
}

func startDeployments(ctx context.Context, m *manager) error {
	apps := m.typed.Apps().V1()
	started, err := deployment.NewDeploymentController(
		ctx, apps.Deployments(), apps.ReplicaSets(), m.typed.Core().V1().Pods(),
		m.clients.ClientOrDie("deployment-controller"))
	if err == nil {
		go started.Run(ctx, workers)
	}
	return err
}

func startDisruption(ctx context.Context, m *manager) error {
	const name = "disruption-controller"
	client := m.clients.ClientOrDie(name)
	scales, err := scale.NewForConfig(
		m.clients.ConfigOrDie(name), m.mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return err
	}
	apps, core := m.typed.Apps().V1(), m.typed.Core().V1()
	go disruption.NewDisruptionController(
		ctx, core.Pods(), m.typed.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(),
		client, m.mapper, scales, client.Discovery()).Run(ctx)
	return nil
}

func startEndpoints(ctx context.Context, m *manager) error {
	core, slices := m.typed.Core().V1(), m.typed.Discovery().V1().EndpointSlices()
	go endpoint.NewEndpointController(
		ctx, core.Pods(), core.Services(), core.Endpoints(),
		m.clients.ClientOrDie("endpoint-controller"), 0).Run(ctx, workers)
	go endpointslice.NewController(
		ctx, core.Pods(), core.Services(), core.Nodes(), slices, endpointsOfSlice,
		m.clients.ClientOrDie("endpointslice-controller"), 0).Run(ctx, workers)
	go endpointslicemirroring.NewController(
		ctx, core.Endpoints(), slices, core.Services(), endpointsOfMirror,
		m.clients.ClientOrDie("endpointslicemirroring-controller"), 0).Run(ctx, workers)
	return nil
}

func startEphemeralVolumes(ctx context.Context, m *manager) error {
	core := m.typed.Core().V1()
	started, err := ephemeral.NewController(
		ctx, m.clients.ClientOrDie("ephemeral-volume-controller"),
		core.Pods(), core.PersistentVolumeClaims())
	if err == nil {
		go started.Run(ctx, workers)
	}
	return err
}

func startCollector(ctx context.Context, m *manager) error {
	const name = "generic-garbage-collector"
	client, access := m.clients.ClientOrDie(name), m.clients.ConfigOrDie(name)
	access.QPS *= 2 // a deletion takes two requests
	objects, err := metadata.NewForConfig(access)
	if err != nil {
		return err
	}
	started, err := garbagecollector.NewComposedGarbageCollector(ctx, client, objects, m.mapper, m.graph)
	if err != nil {
		return err
	}
	go started.Run(ctx, manyWorkers, discoveryPeriod)
	go started.Sync(ctx, m.clients.DiscoveryClientOrDie(name), discoveryPeriod)
	return nil
}

func startJobs(ctx context.Context, m *manager) error {
	started, err := job.NewController(
		ctx, m.typed.Core().V1().Pods(), m.typed.Batch().V1().Jobs(),
		m.clients.ClientOrDie("job-controller"))
	if err == nil {
		go started.Run(ctx, workers)
	}
	return err
}

func startNamespaces(ctx context.Context, m *manager) error {
	// A namespace's end takes a request for each kind.
	access := m.clients.ConfigOrDie("namespace-controller")
	access.QPS *= 20
	access.Burst *= 100
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(access)
	if err != nil {
		return err
	}
	go namespace.NewNamespaceController(
		ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		m.typed.Core().V1().Namespaces(), namespacePeriod, corev1.FinalizerKubernetes,
	).Run(ctx, 2*workers)
	return nil
}

func startNodes(ctx context.Context, m *manager) error {
	const account = "node-controller"
	core := m.typed.Core().V1()
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(
		ctx, m.typed.Coordination().V1().Leases(), core.Pods(), core.Nodes(),
		m.typed.Apps().V1().DaemonSets(), m.clients.ClientOrDie(account), nodeLook, nodeStart,
		nodeGrace, evictionRate, slowEvictionRate, largeCluster, unhealthyShare)
	if err != nil {
		return err
	}
	eviction, err := tainteviction.New(
		ctx, m.clients.ClientOrDie(account), core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		return err
	}
	go lifecycle.Run(ctx)
	go eviction.Run(ctx)
	return nil
}

func startPodCollector(ctx context.Context, m *manager) error {
	core := m.typed.Core().V1()
	client := m.clients.ClientOrDie("pod-garbage-collector")
	go podgc.NewPodGC(ctx, client, core.Pods(), core.Nodes(), finishedPods).Run(ctx)
	return nil
}

func startQuotas(ctx context.Context, m *manager) error {
	const name = "resourcequota-controller"
	kinds := m.clients.DiscoveryClientOrDie(name).ServerPreferredNamespacedResources
	counted := quotas.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(m.typed.ForResource))
	started, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               m.clients.ClientOrDie(name).CoreV1(),
		ResourceQuotaInformer:     m.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(quotaPeriod),
		InformerFactory:           m.all,
		ReplenishmentResyncPeriod: resync,
		DiscoveryFunc:             kinds,
		IgnoredResourcesFunc:      counted.IgnoredResources,
		InformersStarted:          m.started,
		Registry:                  generic.NewRegistry(counted.Evaluators()),
		UpdateFilter:              quotas.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	go started.Run(ctx, workers)
	go started.Sync(ctx, kinds, discoveryPeriod)
	return nil
}

func startReplicaSets(ctx context.Context, m *manager) error {
	go replicaset.NewReplicaSetController(
		ctx, m.typed.Apps().V1().ReplicaSets(), m.typed.Core().V1().Pods(),
		m.clients.ClientOrDie("replicaset-controller"), replicaset.BurstReplicas).Run(ctx, workers)
	return nil
}

func startServiceAccounts(ctx context.Context, m *manager) error {
	core := m.typed.Core().V1()
	started, err := serviceaccount.NewServiceAccountsController(
		core.ServiceAccounts(), core.Namespaces(),
		m.clients.ClientOrDie("service-account-controller"),
		serviceaccount.DefaultServiceAccountsControllerOptions())
	if err == nil {
		go started.Run(ctx, 1)
	}
	return err
}

func startStatefulSets(ctx context.Context, m *manager) error {
	apps, core := m.typed.Apps().V1(), m.typed.Core().V1()
	go statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), m.clients.ClientOrDie("statefulset-controller"),
	).Run(ctx, workers)
	return nil
}

func startTimeToLive(ctx context.Context, m *manager) error {
	client := m.clients.ClientOrDie("ttl-after-finished-controller")
	go ttlafterfinished.New(ctx, m.typed.Batch().V1().Jobs(), client).Run(ctx, workers)
	return nil
}

// startTokens serves Secrets that ask for the token of a service account. It needs no token itself.
func startTokens(ctx context.Context, m *manager) error {
	key, err := keyutil.PrivateKeyFromFile(m.keyFile)
	if err != nil {
		return err
	}
	certificate, err := os.ReadFile(m.caFile)
	if err != nil {
		return err
	}
	generator, err := tokens.JWTTokenGenerator(tokens.LegacyIssuer, key)
	if err != nil {
		return err
	}
	core := m.typed.Core().V1()
	started, err := serviceaccount.NewTokensController(
		klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(),
		m.root.ClientOrDie("tokens-controller"),
		serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: certificate})
	if err == nil {
		go started.Run(ctx, workers)
	}
	return err
}

func startVolumes(ctx context.Context, m *manager) error {
	core := m.typed.Core().V1()
	folders := hostpath.ProbeVolumePlugins(volume.VolumeConfig{
		RecyclerMinimumTimeout:   recycleSeconds,
		RecyclerTimeoutIncrement: recycleStep,
		RecyclerPodTemplate:      volume.NewPersistentVolumeRecyclerPodTemplate(),
	})
	binder, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                m.clients.ClientOrDie("persistent-volume-binder"),
		SyncPeriod:                bindPeriod,
		VolumePlugins:             folders,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             m.typed.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return err
	}
	claims, err := pvcprotection.NewPVCProtectionController(
		klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(),
		m.clients.ClientOrDie("pvc-protection-controller"))
	if err != nil {
		return err
	}
	volumes := pvprotection.NewPVProtectionController(
		klog.FromContext(ctx), core.PersistentVolumes(),
		m.clients.ClientOrDie("pv-protection-controller"))
	go binder.Run(ctx)
	go claims.Run(ctx, 1)
	go volumes.Run(ctx, 1)
	return nil
}
