"""The Go client is compiled without the parts that this project does not use."""

from pathlib import Path

import pytest

from localcluster import LocalClusterError, slim_client

CLIENTSET = """\
package kubernetes

import (
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	appsv1beta1 "k8s.io/client-go/kubernetes/typed/apps/v1beta1"
)

type Interface interface {
	AppsV1() appsv1.AppsV1Interface
	AppsV1beta1() appsv1beta1.AppsV1beta1Interface
}

type Clientset struct {
	appsV1      *appsv1.AppsV1Client
	appsV1beta1 *appsv1beta1.AppsV1beta1Client
}

// AppsV1 retrieves the AppsV1Client
func (c *Clientset) AppsV1() appsv1.AppsV1Interface {
	return c.appsV1
}

// AppsV1beta1 retrieves the AppsV1beta1Client
func (c *Clientset) AppsV1beta1() appsv1beta1.AppsV1beta1Interface {
	return c.appsV1beta1
}

func NewForConfigAndClient() (*Clientset, error) {
	cs.appsV1, err = appsv1.NewForConfigAndClient(&configShallowCopy, httpClient)
	if err != nil {
		return nil, err
	}
	cs.appsV1beta1, err = appsv1beta1.NewForConfigAndClient(&configShallowCopy, httpClient)
	if err != nil {
		return nil, err
	}
	return &cs, nil
}

func New() *Clientset {
	cs.appsV1 = appsv1.New(c)
	cs.appsV1beta1 = appsv1beta1.New(c)
	return &cs
}
"""
GENERIC = """\
package informers

import (
	v1 "k8s.io/api/apps/v1"
	v1beta1 "k8s.io/api/apps/v1beta1"
)

func ForResource() {
	switch resource {
	// Group=apps, Version=v1
	case v1.SchemeGroupVersion.WithResource("deployments"):
		return f.Apps().V1().Deployments().Informer()
	// Group=apps, Version=v1beta1
	case v1beta1.SchemeGroupVersion.WithResource("deployments"):
		return f.Apps().V1beta1().Deployments().Informer()
	}
}
"""
GROUP = """\
package apps

import (
	v1 "k8s.io/client-go/informers/apps/v1"
	v1beta1 "k8s.io/client-go/informers/apps/v1beta1"
)

type Interface interface {
	// V1 provides access to shared informers for resources in V1.
	V1() v1.Interface
	// V1beta1 provides access to shared informers for resources in V1beta1.
	V1beta1() v1beta1.Interface
}

// V1 returns a new v1.Interface.
func (g *group) V1() v1.Interface {
	return v1.New(g.factory, g.namespace, g.tweakListOptions)
}

// V1beta1 returns a new v1beta1.Interface.
func (g *group) V1beta1() v1beta1.Interface {
	return v1beta1.New(g.factory, g.namespace, g.tweakListOptions)
}
"""
DEPLOYMENT = """\
package v1

import (
	fmt "fmt"

	appsv1 "k8s.io/api/apps/v1"
	applyconfigurationsappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	gentype "k8s.io/client-go/gentype"
)

type DeploymentInterface interface {
	Get(ctx context.Context, name string) (*appsv1.Deployment, error)
	Apply(ctx context.Context, deployment *applyconfigurationsappsv1.Deployment) error
}

type deployments struct {
	*gentype.ClientWithListAndApply[*appsv1.One, *appsv1.List, *applyconfigurationsappsv1.One]
}

func newDeployments() *deployments {
	return gentype.NewClientWithApply[*appsv1.One, *applyconfigurationsappsv1.One]()
}

// ApplyScale takes a scale.
func (c *deployments) ApplyScale(scale *applyconfigurationsappsv1.Scale) error {
	return fmt.Errorf("no scale")
}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a client with one group of two versions, of which one is unused."""
    monkeypatch.setattr(slim_client, "_UNUSED_VERSIONS", {"apps": ("v1beta1",)})
    for name, text in (
        ("kubernetes/clientset.go", CLIENTSET),
        ("kubernetes/typed/apps/v1/deployment.go", DEPLOYMENT),
        ("kubernetes/typed/core/v1/secret.go", DEPLOYMENT),
        ("informers/generic.go", GENERIC),
        ("informers/apps/interface.go", GROUP),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_an_unused_version_is_gone(module: Path) -> None:
    """No line names the unused version, and the used version keeps all its lines."""
    slim = {str(path): text for path, text in slim_client.slim_client(module)}
    for name, text in (
        ("kubernetes/clientset.go", CLIENTSET),
        ("informers/generic.go", GENERIC),
        ("informers/apps/interface.go", GROUP),
    ):
        assert "v1beta1" not in slim[name].lower().replace("version=v1beta1", "")
        kept = [line for line in text.splitlines() if "v1beta1" not in line.lower()]
        assert set(kept) == {
            line for line in slim[name].splitlines() if "Version=v1beta1" not in line
        }


def test_server_side_apply_is_gone(module: Path) -> None:
    """A kind's client and its imports lose server-side apply, and keep all else."""
    slim = {str(path): text for path, text in slim_client.slim_client(module)}
    text = slim["kubernetes/typed/apps/v1/deployment.go"]
    assert "pply" not in text
    assert '"fmt"' not in text
    assert "*gentype.ClientWithList[*appsv1.One, *appsv1.List]\n" in text
    assert "gentype.NewClient[*appsv1.One]()" in text
    assert "\tGet(ctx context.Context, name string)" in text


def test_a_client_whose_apply_is_used_stays(module: Path) -> None:
    """The client of Secrets is not changed, because Helm applies Secrets."""
    assert Path("kubernetes/typed/core/v1/secret.go") not in dict(slim_client.slim_client(module))


def test_another_form_is_an_error(module: Path) -> None:
    """An unknown form of the client raises an error, so that it is not compiled unchanged."""
    (module / "informers" / "apps" / "interface.go").write_text("package apps\n")
    with pytest.raises(LocalClusterError, match="apps/v1beta1 in a form that we do not know"):
        list(slim_client.slim_client(module))
