package main

import (
	"context"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const removeSeconds = 60

// removePods ends every pod of a container runtime, which the kubelet leaves running when it stops.
//
// The runtime itself kills the containers and gives back what the pods hold on the machine:
// addresses, network devices, network namespaces, mounts.
func removePods() {
	if len(os.Args) != 2 {
		fail("usage: sluice-testnode remove-pods unix:///RUNTIME.SOCKET")
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeSeconds*time.Second)
	defer cancel()
	connection, err := grpc.NewClient(
		os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fail("%v", err)
	}
	defer connection.Close()
	runtime := cri.NewRuntimeServiceClient(connection)
	pods, err := runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		fail("%v", err)
	}
	failures := make(chan error)
	for _, pod := range pods.Items {
		go func() { failures <- removePod(ctx, runtime, pod.Id) }()
	}
	for range pods.Items {
		if failure := <-failures; failure != nil {
			err = failure
		}
	}
	if err != nil {
		fail("%v", err)
	}
}

func removePod(ctx context.Context, runtime cri.RuntimeServiceClient, id string) error {
	_, err := runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	if err != nil {
		return err
	}
	_, err = runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}
