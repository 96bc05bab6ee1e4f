# One image for the operator, the drivers and Spark's executors.
#
#   docker build -t sluice .        or        buildah bud -t sluice .
#
# Works with a read-only root file system and any memory-backed or disk-backed /tmp; runs as 65532.
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS runtime
# The JRE's package links manual pages, and slim bases have no folder for them.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      openjdk-17-jre-headless python3 tini >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /usr/share/man/* /usr/share/doc/*

FROM runtime AS build
ARG UV_VERSION=0.13.8
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      python3-pip python3-setuptools python3-venv python3-wheel >/dev/null
RUN python3 -m venv /opt/tools && /opt/tools/bin/pip install -q --no-cache-dir uv==${UV_VERSION}
RUN python3 -m venv --without-pip /opt/sluice
WORKDIR /src
COPY pyproject.toml uv.lock ./
# The lock says what and with which hashes, pip fetches it by its own configuration. PySpark comes
# as a source package of ready-made parts; all others as wheels, so no compiler is needed.
RUN /opt/tools/bin/uv export -q --frozen --no-dev --no-emit-project -o requirements.txt \
 && pip install -q --no-cache-dir --root-user-action ignore --no-deps --require-hashes \
      --only-binary :all: --no-binary pyspark --no-build-isolation \
      --target /opt/sluice/lib/python3.11/site-packages -r requirements.txt
COPY operator/sluice /opt/sluice/lib/python3.11/site-packages/sluice
COPY docker/sluice docker/entrypoint /opt/sluice/bin/
# Compiled files that nobody checks against their source: the image does not change.
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/sluice/lib

FROM runtime
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="Declarative stream copies for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Java's and Spark's login wants a name for the user.
RUN echo 'sluice:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'sluice:x:65532:' >>/etc/group
COPY LICENSE /opt/sluice/LICENSE
COPY --from=build /opt/sluice /opt/sluice
ENV PATH=/opt/sluice/bin:/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["tini", "--", "/opt/sluice/bin/entrypoint"]
CMD ["sluice", "--help"]
