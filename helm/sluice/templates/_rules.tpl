{{- /*
What the operator may do in the namespaces it serves. docs/security.md gives the reason for each rule.
Tests compare the two, and both with what the operator's code calls.
*/ -}}
{{- define "sluice.operatorRules" -}}
- apiGroups: [sluice.dev]
  resources: [ephemeralstreams, scopecopies, streamarchives, streamcopies, streamqueries, streamstores]
  verbs: [get, list, watch, patch]
- apiGroups: [sluice.dev]
  resources: [scopecopies, streamcopies]
  verbs: [delete]
- apiGroups: [sluice.dev]
  resources: [streamcopies]
  verbs: [create]
- apiGroups: [sluice.dev]
  resources: [ephemeralstreams/status, scopecopies/status, streamarchives/status, streamcopies/status, streamqueries/status, streamstores/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get{{ if .Values.stores.holdSecrets }}, patch{{ end }}]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch, create, delete]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}

{{- /* The usual owners of EphemeralStreams; others are added by ClusterRoles with the label below. */ -}}
{{- define "sluice.ownerRules" -}}
- apiGroups: [apps]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [flink.apache.org]
  resources: [flinkdeployments, flinksessionjobs]
  verbs: [get, list, watch]
- apiGroups: [sparkoperator.k8s.io, spark.apache.org]
  resources: [sparkapplications, scheduledsparkapplications]
  verbs: [get, list, watch]
{{- end }}

{{- /*
The Lease by which replicas take turns, in the release's namespace only. A name cannot limit the right to create.
*/ -}}
{{- define "sluice.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "sluice.operatorName" . | quote }}]
  verbs: [get, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end }}

{{- /* What the Job may do that runs before the release is deleted: no more than its policy asks for. */ -}}
{{- define "sluice.uninstallRules" -}}
{{- if eq .Values.uninstall.policy "orphan" -}}
- apiGroups: [sluice.dev]
  resources: [ephemeralstreams, scopecopies, streamarchives, streamcopies, streamqueries]
  verbs: [get, list, patch, delete{{ if .Values.admission.enabled }}, orphan{{ end }}]
- apiGroups: [sluice.dev]
  resources: [streamstores]
  verbs: [get, list, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, patch]
{{- else if eq .Values.uninstall.policy "delete" -}}
- apiGroups: [sluice.dev]
  resources: [ephemeralstreams, scopecopies, streamarchives, streamcopies, streamqueries]
  verbs: [list, delete]
- apiGroups: [sluice.dev]
  resources: [streamstores]
  verbs: [list]
{{- else -}}
- apiGroups: [sluice.dev]
  resources: [ephemeralstreams, scopecopies, streamarchives, streamcopies, streamqueries, streamstores]
  verbs: [list]
{{- end }}
{{- end }}

{{- /* What a driver with executors may do in its own namespace. */ -}}
{{- define "sluice.driverRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
{{- end }}
