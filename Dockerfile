# One image for the operator, the drivers and Spark's executors, and one for queries.
#
#   docker build -t sluice .        or        buildah bud -t sluice .
#   python3 hack/pageparts.py && docker build -t sluice-query --target sluice-query .
#
# It runs as user 65532, with a read-only root file system, and writes to /tmp only.
#
# CONTRIBUTING.md says how two builds give one digest: with a base that is named by its digest, and
# packages of Debian at a date.
ARG BASE_IMAGE=debian:bookworm-slim

# What the finished image has of Debian.
FROM ${BASE_IMAGE} AS runtime
# Lines of a sources.list, such as a snapshot of Debian at a date; by default the base's own.
ARG APT_SOURCES=""
RUN if [ -n "${APT_SOURCES}" ]; then \
      rm -rf /etc/apt/sources.list.d/* && echo "${APT_SOURCES}" >/etc/apt/sources.list; \
    fi
# The JRE's package links manual pages, and slim bases have no folder for them. Its certificates have
# the date of their installation.
RUN --mount=type=bind,source=docker/undate.py,target=/run/undate.py \
    mkdir -p /usr/share/man/man1 \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      openjdk-17-jre-headless python3 tini >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/cache/ldconfig/* \
      /var/log/* /usr/share/man/* \
 && find /usr/share/doc -type f ! -name copyright -delete \
 && python3 /run/undate.py /etc/ssl/certs/java/cacerts changeit \
# Java's and Spark's login wants a name for the user.
 && echo 'sluice:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'sluice:x:65532:' >>/etc/group

# What only builds, and does not stay: pip, uv, setuptools and a C compiler.
FROM runtime AS tools
ARG UV_VERSION=0.13.8
ARG WHEEL_VERSION=0.45.1
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      gcc libc6-dev libpython3-dev python3-venv >/dev/null \
 && python3 -m venv /opt/tools \
 && /opt/tools/bin/pip install -q --no-cache-dir --no-compile --root-user-action ignore \
      uv==${UV_VERSION} wheel==${WHEEL_VERSION}
COPY docker/install docker/wheel.cfg /opt/tools/bin/
# Buildah 1.28 mounts a stage that it has from its cache without the stage's last layer: this one.
RUN true

# Python's packages, in a virtual environment without pip.
FROM runtime AS packages
COPY pyproject.toml uv.lock docker/unused-jars /src/
# The lock names the packages and their hashes.
# Of Arrow, archives need what reads and writes Parquet; each of its wheels has some files three times.
# Of Kubernetes' client, the operator needs what sends requests: no resource has a class of its own.
# Compiled files are not checked against their source: the image does not change. Sets in them are in
# the order of hashes; and one process compiles all, since what it has compiled before shows in a file.
RUN --mount=type=bind,from=tools,source=/opt/tools,target=/opt/tools \
    export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 \
 && python3 -m venv --without-pip /opt/sluice \
 && cd /opt/sluice/lib/python3.11/site-packages \
 && /opt/tools/bin/uv export -q --no-cache --project /src --frozen --no-dev --no-emit-project \
      -o /src/requirements.txt \
 && /opt/tools/bin/install /src/requirements.txt . \
 && grep '^[^#]' /src/unused-jars | while read -r jars; do rm -f pyspark/jars/$jars; done \
 && rm -rf bin pyspark/data pyspark/examples pyspark/jars/connect-repl pyspark/python pyspark/sbin \
 && rm -rf pyarrow/include pyarrow/includes pyarrow/src pyarrow/tests zstandard/_cffi* \
      pyarrow/_flight* pyarrow/libarrow_flight* pyarrow/libarrow_python_flight* \
      pyarrow/_s3fs* pyarrow/libarrow_s3* pyarrow/lib*.so.*.*.* \
 && find kubernetes/client kubernetes/aio/client -path '*/models/*.py' ! -name __init__.py -delete \
 && find kubernetes/client kubernetes/aio/client -path '*/api/*.py' ! -name __init__.py -delete \
 && find . \( -name '*.pyi' -o -name '*.px[di]' -o -name '*.pyx' \) -delete \
 && echo /opt/sluice/app >sluice.pth \
 && python3 -m compileall -q --invalidation-mode unchecked-hash . \
 && rm -rf /src

# Java's classes, written down as they lie in memory. Depends on few files, so that it is seldom
# done again. Which classes a training loads depends on its pace, so no two builds give the same
# archive. Without one (CLASS_ARCHIVE=no), JVMs start in twice the time.
FROM packages AS classes
ARG CLASS_ARCHIVE=yes
WORKDIR /src
COPY docker/train.py ./
COPY operator/sluice/__init__.py /opt/sluice/app/sluice/
COPY operator/sluice/errors /opt/sluice/app/sluice/errors
COPY operator/sluice/pipelines/__init__.py /opt/sluice/app/sluice/pipelines/
COPY operator/sluice/pipelines/spark/__init__.py operator/sluice/pipelines/spark/application.py \
     operator/sluice/pipelines/spark/executor.py operator/sluice/pipelines/spark/java.py \
     operator/sluice/pipelines/spark/jvm.py operator/sluice/pipelines/spark/lost.py \
     operator/sluice/pipelines/spark/sparkconf.py \
     operator/sluice/pipelines/spark/log4j2.properties /opt/sluice/app/sluice/pipelines/spark/
RUN mkdir made \
 && if [ "${CLASS_ARCHIVE}" = yes ]; then /opt/sluice/bin/python train.py made/spark.jsa; fi

# What is written in C.
FROM tools AS compiled
WORKDIR /src
COPY docker/compile.py ./
COPY operator/sluice/core/events/_framing.c sluice/core/events/
RUN python3 compile.py sluice

FROM packages AS app
ENV PYTHONHASHSEED=0
COPY operator/sluice /opt/sluice/app/sluice
COPY --from=compiled /src/sluice/core/events/_framing.abi3.so /opt/sluice/app/sluice/core/events/
ARG VERSION=dev
# The build fails where the extension cannot be loaded; Python would quietly take its place.
# A checkout with a strict umask has files that only their owner reads, and pods have another user.
RUN echo "${VERSION}" >/opt/sluice/app/sluice/VERSION \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/sluice/app \
 && chmod -R a+rX /opt/sluice/app \
 && /opt/sluice/bin/python -c 'import sluice.core.events._framing'

FROM packages AS filled
COPY --from=classes /src/made/ /opt/sluice/lib/
COPY --chmod=755 docker/sluice docker/entrypoint /opt/sluice/bin/
COPY --chmod=644 LICENSE /opt/sluice/LICENSE
COPY --from=app /opt/sluice/app /opt/sluice/app

# The bill of materials, from what is there.
FROM filled AS bill
ARG VERSION=dev
WORKDIR /src
COPY docker/bill.py ./
RUN python3 bill.py /opt/sluice/sbom.cdx.json /opt/sluice/lib/python3.11/site-packages "${VERSION}"

FROM filled AS sluice
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="Declarative stream copies for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=bill /opt/sluice/sbom.cdx.json /opt/sluice/sbom.cdx.json
ENV PATH=/opt/sluice/bin:/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["tini", "--", "/opt/sluice/bin/entrypoint"]
CMD ["sluice", "--help"]

# What queries load and copies do not: jars of PySpark, and Python's packages of the extra `verify`.
FROM tools AS query-parts
COPY pyproject.toml uv.lock docker/query-jars /src/
RUN cd /src \
 && export PYTHONHASHSEED=0 \
 && /opt/tools/bin/uv export -q --no-cache --frozen --no-dev --no-emit-project --extra verify \
      -o all.txt \
 && awk '/^[a-z]/ {on = /^(pyspark|msgspec|duckdb|sqlglot)==/} on' all.txt >wanted.txt \
 && /opt/tools/bin/install wanted.txt packages \
 && mkdir /src/jars \
 && (cd packages/pyspark/jars \
     && grep '^[^#]' /src/query-jars | while read -r jars; do mv $jars /src/jars/ || exit 1; done) \
 && rm -rf packages/pyspark* packages/bin packages/py4j* \
 && find packages -name '*.pyi' -delete \
 && python3 -m compileall -q --invalidation-mode unchecked-hash -s packages \
      -p /opt/sluice/lib/python3.11/site-packages packages

# Sluice's source of streams, and the library of the gateway's pages, which hack/pageparts.py fetches.
FROM packages AS query-app
COPY operator/pyspark_sluice /opt/sluice/app/pyspark_sluice
COPY docker/page-parts /opt/sluice/app/sluice/serving/page/vendor
RUN PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode unchecked-hash \
      /opt/sluice/app/pyspark_sluice \
 && chmod -R a+rX /opt/sluice/app

# The image of queries: all of Spark SQL, and the gateway.
FROM sluice AS query-filled
USER 0:0
COPY --from=query-parts /src/packages/ /opt/sluice/lib/python3.11/site-packages/
COPY --from=query-parts /src/jars/ /opt/sluice/lib/python3.11/site-packages/pyspark/jars/
COPY --from=query-app /opt/sluice/app /opt/sluice/app

FROM query-filled AS query-bill
ARG VERSION=dev
WORKDIR /src
COPY docker/bill.py ./
RUN python3 bill.py /opt/sluice/sbom.cdx.json /opt/sluice/lib/python3.11/site-packages "${VERSION}" \
      /opt/sluice/app/sluice/serving/page/vendor

FROM query-filled AS sluice-query
COPY --from=query-bill /opt/sluice/sbom.cdx.json /opt/sluice/sbom.cdx.json
USER 65532:65532

# Without a target, the image of copies is built.
FROM sluice
