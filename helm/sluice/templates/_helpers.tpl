{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (include "sluice.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "sluice.operatorName" -}}
{{ include "sluice.fullname" . }}-operator
{{- end }}

{{- /* The profiles name it, so it does not follow the release's name. */ -}}
{{- define "sluice.driverName" -}}
sluice-driver
{{- end }}

{{- define "sluice.labels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "sluice.gatewaySelector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "sluice.uninstallName" -}}
{{ include "sluice.fullname" . }}-uninstall
{{- end }}

{{- define "sluice.uninstallLabels" -}}
{{ include "sluice.labels" . }}
app.kubernetes.io/component: uninstall
{{- end }}

{{- /* An object of the hook; its argument is the weight, and lower ones are made first. */ -}}
{{- define "sluice.uninstallHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "sluice.testName" -}}
{{ include "sluice.fullname" . }}-test
{{- end }}

{{- define "sluice.testLabels" -}}
{{ include "sluice.labels" . }}
app.kubernetes.io/component: test
{{- end }}

{{- /* An object of `helm test`; the argument as above. */ -}}
{{- define "sluice.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "sluice.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The variables by which the operator sends its spans; nothing without an endpoint. */ -}}
{{- define "sluice.tracing" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: {{ .sampler }}
{{- with .samplerArgument }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ . | quote }}
{{- end }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: {{ printf "k8s.namespace.name=%s,k8s.pod.name=$(POD_NAME)" $.Release.Namespace | quote }}
{{- if .headers.secretName }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom: {secretKeyRef: {name: {{ .headers.secretName | quote }}, key: {{ .headers.secretKey | quote }}}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Port of /livez, /readyz and /metrics. */ -}}
{{- define "sluice.port" -}}
8080
{{- end }}

{{- /* The operator's settings, as it reads them from its file. */ -}}
{{- define "sluice.config" -}}
clusterID: {{ .Values.clusterID | quote }}
namespaces: {{ toJson .Values.watch.namespaces }}
excludedNamespaces: {{ toJson .Values.watch.excludedNamespaces }}
executorNamespaces: {{ toJson .Values.driver.namespaces }}
resyncSeconds: {{ int .Values.operator.resyncSeconds }}
lookSeconds: {{ int .Values.operator.lookSeconds }}
ambientIdentity: {{ .Values.operator.ambientIdentity }}
stores:
  allowed: {{ toJson .Values.stores.allowed }}
  holdSecrets: {{ .Values.stores.holdSecrets }}
  requireSecretLabel: {{ .Values.stores.requireSecretLabel }}
metrics:
  resources: {{ .Values.operator.metrics.resources }}
  maxResources: {{ int .Values.operator.metrics.maxResources }}
notices:
  sink: {{ .Values.notices.sink | quote }}
  header:
    name: {{ .Values.notices.header.name | quote }}
    file: {{ ternary "/etc/sluice-sink/header" "" (ne .Values.notices.header.secretName "") | quote }}
lease:
  namespace: {{ .Release.Namespace | quote }}
  name: {{ include "sluice.operatorName" . | quote }}
tracing:
  endpoint: {{ .Values.tracing.endpoint | quote }}
  headers: {{ toJson .Values.tracing.headers }}
  sampler: {{ .Values.tracing.sampler }}
  samplerArgument: {{ .Values.tracing.samplerArgument | quote }}
queries:
  image: {{ .Values.queries.image | quote }}
  gateway: {{ ternary (.Values.gateway.url | default "/") "" .Values.gateway.enabled | quote }}
listen:
  host: 0.0.0.0
  port: {{ include "sluice.port" . }}
image: {{ include "sluice.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
imagePullSecrets:
  {{- range .Values.imagePullSecrets }}
  - {{ .name | quote }}
  {{- else }} []
  {{- end }}
profiles:
{{- range $name, $profile := .Values.profiles }}
  {{ $name | quote }}:
    {{- toYaml $profile | nindent 4 }}
{{- end }}
{{- end }}
