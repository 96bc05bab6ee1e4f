"""The Go client of Kubernetes with less in it.

Each of the 500 packages that use the client makes the compiler read all types that it names. Most
of them nobody here uses: old versions of the API, and the types that only server-side apply has.
The client's files are generated, so they have one form, and patterns can take parts out. Should a
later version need one of these parts, the compiler says so.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from localcluster.errors import LocalClusterError

MODULE = "k8s.io/client-go"

# The versions of the API that no component asks for. The server has them all the same.
_UNUSED_VERSIONS = {
    "admissionregistration": ("v1alpha1",),
    "apps": ("v1beta1", "v1beta2"),
    "authorization": ("v1beta1",),
    "autoscaling": ("v2beta1", "v2beta2"),
    "batch": ("v1beta1",),
    "coordination": ("v1alpha2",),
    "events": ("v1beta1",),
    "extensions": ("v1beta1",),
    "flowcontrol": ("v1beta1", "v1beta2", "v1beta3"),
    "node": ("v1alpha1", "v1beta1"),
    "rbac": ("v1alpha1", "v1beta1"),
    "resource": ("v1beta1", "v1beta2"),
    "scheduling": ("v1alpha1", "v1beta1"),
    "storage": ("v1alpha1", "v1beta1"),
    "storagemigration": ("v1alpha1",),
}

# The clients whose server-side apply is used.
_APPLYING = {
    "core/v1/configmap.go",
    "core/v1/secret.go",
    "core/v1/serviceaccount.go",
    "flowcontrol/v1/flowschema.go",
    "networking/v1/servicecidr.go",
    "rbac/v1/clusterrole.go",
}

_APPLY_OF_INTERFACE = re.compile(r"^\tApply\w*\(ctx .*\n", re.MULTILINE)
_APPLY_FUNCTION = re.compile(r"^(?://.*\n)*func \(c \*\w+\) Apply\w*\((?:.*\n)*?}\n", re.MULTILINE)
_APPLYING_TYPE = re.compile(
    r"\b((?:New)?Client)With(?:ListAnd)?Apply\[((?:\*[\w.]+, )+)\*applyconfigurations\w+\.\w+]"
)
_IMPORT = re.compile(r'^\t(\w+) "[^"]+"\n', re.MULTILINE)


def slim_client(module: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of the client that become smaller, by their path in the module.

    Args:
        module: the folder of the module.

    Raises:
        LocalClusterError: the client has another form than we know.
    """
    clients = module / "kubernetes" / "typed"
    for file in sorted(clients.glob("*/*/*.go")):
        text = file.read_text()
        if "applyconfigurations" in text and str(file.relative_to(clients)) not in _APPLYING:
            yield file.relative_to(module), _without_unused_imports(_without_apply(text))
    for name, without in (
        ("kubernetes/clientset.go", _without_client),
        ("informers/generic.go", _without_cases),
    ):
        text = (module / name).read_text()
        for group, versions in _UNUSED_VERSIONS.items():
            for version in versions:
                text = _changed(text, without(text, group, version), f"{group}/{version}")
        yield Path(name), _without_unused_imports(text)
    for group, versions in _UNUSED_VERSIONS.items():
        file = module / "informers" / group / "interface.go"
        if file.exists():
            text = file.read_text()
            for version in versions:
                text = _changed(text, _without_informers(text, version), f"{group}/{version}")
            yield file.relative_to(module), _without_unused_imports(text)


def _without_apply(text: str) -> str:
    """Return the client of a kind without server-side apply."""

    def plain(match: re.Match[str]) -> str:
        types = match[2].removesuffix(", ")
        return f"{match[1]}{'WithList' if ',' in types else ''}[{types}]"

    text = _APPLY_FUNCTION.sub("", _APPLY_OF_INTERFACE.sub("", text))
    return _APPLYING_TYPE.sub(plain, text)


def _without_client(text: str, group: str, version: str) -> str:
    """Return the set of clients without the one of a version."""
    field = f"{group}{version.capitalize()}"
    method = field[0].upper() + field[1:]
    alias = field.lower()
    for pattern in (
        rf"^\t{method}\(\) .*\n",
        rf"^\t{field} +\*{alias}\..*\n",
        rf"^// {method} .*\nfunc \(c \*Clientset\) {method}\(\).*\n.*\n}}\n\n",
        rf"^\tcs\.{field}, err = .*\n.*\n.*\n\t}}\n",
        rf"^\tcs\.{field} = .*\n",
    ):
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text


def _without_cases(text: str, group: str, version: str) -> str:
    """Return the informers of any kind without those of a version."""
    call = rf"f\.{group.capitalize()}\(\)\.{version.capitalize()}\(\)\."
    if not re.search(call, text):
        return f"{text}\n"  # its kinds cannot be watched
    return re.sub(rf"^\tcase .*\n.*{call}.*\n", "", text, flags=re.MULTILINE)


def _without_informers(text: str, version: str) -> str:
    """Return the informers of a group without those of a version."""
    method = version.capitalize()
    text = re.sub(rf"^\t// {method} .*\n\t{method}\(\) .*\n", "", text, flags=re.MULTILINE)
    function = rf"^// {method} .*\nfunc \(g \*group\) {method}\(\) .*\n.*\n}}\n"
    return re.sub(function, "", text, flags=re.MULTILINE)


def _without_unused_imports(text: str) -> str:
    used = set(re.findall(r"\b(\w+)\.", text.partition("\n)\n")[2]))
    return _IMPORT.sub(lambda match: match[0] if match[1] in used else "", text)


def _changed(before: str, after: str, what: str) -> str:
    if before == after:
        raise LocalClusterError(f"{MODULE} has {what} in a form that we do not know")
    return after
